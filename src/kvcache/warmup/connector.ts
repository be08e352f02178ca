import { nanoid } from 'nanoid'
import * as z from 'zod'
import { untilAborted } from '../../async/deadline.ts'
import { createEngineHttp, type EngineHttp } from '../../engines/engine-http.ts'
import { readJson } from '../../json/read-json.ts'
import type { StoredKv } from '../../sessions/session-record.ts'
import { artefactIdFor } from '../artefact-id.ts'
import { type CacheSalts, createCacheSalts, type Isolation, lifeOf } from '../cache-salts.ts'
import {
  type AttachBudget,
  type AttachOutcome,
  type KvConnector,
  type KvPresence,
  type KvTurn,
  type OffloadOutcome,
  type OffloadRequest,
  settledClaim,
} from '../kv-connector.ts'
import type { KvLog } from '../kv-log.ts'
import { createSharedLoads, type SharedLoads } from '../shared-loads.ts'
import { openingName } from '../vault/opening-name.ts'
import type { ContentKey, TokenVault } from '../vault/token-vault.ts'
import { openingFromBytes, openingToBytes } from './opening-record.ts'
import { createPodBoots, type PodBoots } from './pod-boots.ts'
import { createPrefixReader, type PrefixReader } from './prefix-reader.ts'
import { encodeWarmPrefix, parseWarmPrefix, type WarmPrefix } from './warm-prefix.ts'
import { warmUp } from './warm-request.ts'

export interface WarmupOptions {
  readonly isolation: Isolation
  /** Salts are derived from it. */
  readonly secret: string
  /** Shared by all gateway processes. */
  readonly vault: TokenVault
  /** `host:port` of every pod that is configured now. No other address is ever called. */
  readonly pods: () => readonly string[]
  readonly callTimeoutMs: number
  /** How long a turn may run. */
  readonly leaseMs: number
  /** The longest a session can live. */
  readonly vaultTtlMs: number
  /** How long the start of a pod's process is taken as known, milliseconds: for so long a pod that was restarted passes for warm. Default 2,000. */
  readonly bootMaxAgeMs?: number
  readonly log: KvLog
}

const callsPerPod = 32

/**
 * For any OpenAI engine with a prefix cache and `cache_salt`: nothing is stored but the session's first request, encrypted, and a pod that does
 * not know it yet computes it with a request for one token. What a pod has cached becomes unreachable when its salt is never used again.
 */
export const createWarmupConnector = (options: WarmupOptions): KvConnector & { close(): Promise<void> } => {
  const http = createEngineHttp({ callsPerPod })
  const parts: Parts = {
    ...options,
    http,
    salts: createCacheSalts(options.secret),
    boots: createPodBoots(http, { callTimeoutMs: options.callTimeoutMs, maxAgeMs: options.bootMaxAgeMs ?? 2_000 }),
    prefixOf: createPrefixReader(),
    loads: createSharedLoads(),
  }
  return {
    name: 'warmup',
    attach: (turn, kv, budget) => attach(parts, turn, kv, budget),
    fieldsWithoutSession: (tenant) => ({ cache_salt: parts.salts.withoutSession(tenant, options.isolation) }),
    offload: (request) => offload(parts, request),
    detach: async (turn, text) => {
      if (parseClaim(text)?.isCreate === true) await forget(parts, openingName(turn.turnId))
    },
    remove: async ({ payload }) => {
      const prefix = payload === undefined ? undefined : parseWarmPrefix(payload)
      try {
        if (prefix !== undefined) await options.vault.delete([prefix.artefactId])
        return { kind: 'removed' }
      } catch {
        return { kind: 'busy', reason: 'vault_unavailable' }
      }
    },
    reconcile: async () => 0,
    close: () => http.close(),
  }
}

interface Parts extends WarmupOptions {
  readonly http: EngineHttp
  readonly salts: CacheSalts
  readonly boots: PodBoots
  readonly prefixOf: PrefixReader
  readonly loads: SharedLoads<KvPresence>
}

const claimSchema = z.object({
  life: z.string(),
  contentKey: z.string(),
  isCreate: z.boolean(),
  base: z.object({ payload: z.string(), tokens: z.int(), bytes: z.int() }).optional(),
})

/** Undefined for what is no claim, and for a turn that took nothing. */
const parseClaim = (text: string): z.infer<typeof claimSchema> | undefined => claimSchema.safeParse(readJson(text)).data

const attach = async (
  parts: Parts,
  turn: KvTurn,
  kv: StoredKv | undefined,
  budget: AttachBudget,
): Promise<AttachOutcome> => {
  const stored = kv === undefined ? undefined : parts.prefixOf(kv)
  const life = lifeOf(turn, stored?.life)
  const session = parts.isolation === 'session' ? { key: turn.session, life } : undefined
  const salt = parts.salts.of({ tenant: turn.tenant, session, model: turn.model, fingerprint: '' })
  const fields = { cache_salt: salt }
  const { opening } = turn
  if (kv !== undefined && isSurelyWarm(parts, turn, kv)) {
    return { presence: { kind: 'resident', tokens: kv.tokens }, fields, claim: settledClaim }
  }
  const contentKey = turn.contentKey?.()
  if (contentKey === undefined || !parts.pods().includes(turn.pod)) {
    return { presence: { kind: 'failed', cause: new Error('the pod is not configured') }, fields, claim: '' }
  }
  if (opening !== undefined) {
    const entry = { name: openingName(turn.turnId), contentKey, content: openingToBytes(opening) }
    // Only the next pod needs it; this turn need not wait.
    parts.vault
      .put(entry, parts.leaseMs)
      .catch((error: unknown) => parts.log.debug('a request was not kept', { err: error }))
  }
  const base =
    kv === undefined || stored === undefined ? undefined : { payload: kv.payload, tokens: kv.tokens, bytes: kv.bytes }
  const claim = JSON.stringify({ life, contentKey, isCreate: opening !== undefined, base })
  if (kv === undefined) return { presence: { kind: 'empty' }, fields, claim }
  if (stored === undefined) return { presence: { kind: 'missing' }, fields, claim }
  return { presence: await bring(parts, { turn, kv, stored, contentKey, salt }, budget.signal), fields, claim }
}

interface Warming {
  readonly turn: KvTurn
  readonly kv: StoredKv
  readonly stored: WarmPrefix
  readonly contentKey: ContentKey
  readonly salt: string
}

const bring = async (parts: Parts, warming: Warming, signal: AbortSignal): Promise<KvPresence> => {
  const { turn, kv, stored } = warming
  const startedMs = performance.now()
  try {
    const onAbort = (): KvPresence => ({ kind: 'timed-out' })
    const warm = await untilAborted(isWarm(parts, stored, turn.pod), signal, onAbort)
    if (typeof warm === 'object') return warm
    if (warm) return { kind: 'resident', tokens: kv.tokens }
    const presence = await parts.loads.run(`${turn.pod} ${stored.artefactId}`, () => compute(parts, warming), {
      signal,
      onAbort,
    })
    return presence.kind === 'loaded' ? { ...presence, loadMs: performance.now() - startedMs } : presence
  } catch (cause) {
    return { kind: 'failed', cause }
  }
}

/** Whether the turn's pod has what is stored, as far as that is known without asking. A turn that opens a session has more to store. */
const isSurelyWarm = (parts: Parts, { pod, opening }: KvTurn, kv: StoredKv): boolean => {
  const stored = opening === undefined ? parts.prefixOf(kv) : undefined
  const boot = parts.boots.atHand(pod)
  return boot !== undefined && stored?.pods.some(([address, known]) => address === pod && known === boot) === true
}

const isWarm = async (parts: Parts, stored: WarmPrefix, pod: string): Promise<boolean> => {
  const known = stored.pods.find(([address]) => address === pod)
  return known !== undefined && known[1] === (await parts.boots.of(pod))
}

const compute = async (parts: Parts, { turn, stored, contentKey, salt }: Warming): Promise<KvPresence> => {
  const content = await parts.vault.get(stored.artefactId, contentKey)
  const opening = content === undefined ? undefined : openingFromBytes(content)
  if (opening === undefined) return { kind: 'missing' }
  const tokens = await warmUp(parts.http, { pod: turn.pod, opening, salt }, AbortSignal.timeout(parts.callTimeoutMs))
  return { kind: 'loaded', tokens, loadMs: 0 }
}

/** Notes that the pod knows the prefix now. The kept request moves from the turn to the session. */
const offload = async (parts: Parts, request: OffloadRequest): Promise<OffloadOutcome> => {
  if (request.claim === settledClaim) return { kind: 'unchanged' }
  const claim = parseClaim(request.claim)
  if (claim === undefined) return { kind: 'none', reason: 'not_attached' }
  const { pod, turnId, session } = request.turn
  const contentKey = claim.contentKey as ContentKey
  const base = claim.base === undefined ? undefined : parseWarmPrefix(claim.base.payload)
  try {
    if (base !== undefined && (await isWarm(parts, base, pod))) return { kind: 'unchanged' }
    const source = base?.artefactId ?? openingName(turnId)
    const content = await parts.vault.get(source, contentKey)
    if (content === undefined) return { kind: 'none', reason: 'request_unknown' }
    const tokens = claim.base?.tokens ?? request.promptTokens
    if (tokens === undefined || tokens === 0) return { kind: 'none', reason: 'tokens_unknown' }
    const artefactId = artefactIdFor(session, nanoid())
    const others = (base?.pods ?? []).filter(([address]) => address !== pod).slice(-maxPods)
    const pods = [...others, [pod, await parts.boots.of(pod)] as const]
    const payload = encodeWarmPrefix({ artefactId, life: claim.life, pods })
    await request.announce({ artefactId, payload })
    await parts.vault.put({ name: artefactId, contentKey, content }, parts.vaultTtlMs)
    if (claim.isCreate) await forget(parts, openingName(turnId))
    return { kind: 'stored', artefactId, payload, tokens, bytes: content.length }
  } catch (cause) {
    return { kind: 'none', reason: 'offload_failed', cause }
  }
}

const maxPods = 31

/** What stays after a fault goes by its own time. */
const forget = async (parts: Parts, name: string): Promise<void> => {
  await parts.vault.delete([name]).catch((error: unknown) => parts.log.debug('a kept request stays', { err: error }))
}
