import type { StoredKv } from '../../sessions/session-record.ts'
import type { KvPresence } from '../kv-connector.ts'
import { tokensFromBytes } from '../vault/token-bytes.ts'
import type { ContentKey } from '../vault/token-vault.ts'
import { leading } from './leading.ts'
import type { DirectoryEntry } from './lmcache-answers.ts'
import { LmcacheFault } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { pause } from './pause.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { objectKeysOf, type StoredPrefix } from './stored-prefix.ts'

interface Load {
  readonly pod: string
  readonly kv: StoredKv
  readonly stored: StoredPrefix
  readonly contentKey: ContentKey
}

/** Sees to it that the pod has the session's KV, as far as the signal's time allows, and says what it has. */
export const bringToPod = async (parts: Parts, load: Load, signal: AbortSignal): Promise<KvPresence> => {
  const startedMs = performance.now()
  const { artefactId, turnId } = load.stored
  const tokens = await tokensOf(parts, load)
  const named = namedTokens(load.stored)
  const inEngine = Math.min(named, parts.events.residentTokens(load.pod, turnId))
  if (inEngine > 0 && inEngine >= named && named >= load.kv.tokens) return { kind: 'resident', tokens: load.kv.tokens }
  if (!parts.breaker.isClosed()) {
    return orResident(inEngine, { kind: 'unavailable', cause: new StoreUnavailableFault() })
  }
  try {
    const presence = await parts.loads.run(
      `${load.pod} ${artefactId}`,
      () => parts.breaker.run(() => fetchToPod(parts, load, tokens)),
      { signal, onAbort: () => ({ kind: 'timed-out' }) as const },
    )
    const loadMs = performance.now() - startedMs
    return orResident(inEngine, presence.kind === 'loaded' ? { ...presence, loadMs } : presence)
  } catch (cause) {
    return orResident(inEngine, { kind: 'failed', cause })
  }
}

/** A part that the engine still holds is worth saying, whatever became of the rest. */
const orResident = (inEngine: number, presence: KvPresence): KvPresence => {
  const isHit = presence.kind === 'loaded' || presence.kind === 'on-demand' || presence.kind === 'resident'
  if (inEngine === 0 || (isHit && presence.tokens >= inEngine)) return presence
  return { kind: 'resident', tokens: inEngine }
}

const namedTokens = (stored: StoredPrefix): number => stored.chunks.length * stored.chunkTokens

const tokensOf = async (parts: Parts, { stored, contentKey }: Load): Promise<Uint32Array | undefined> => {
  try {
    const content = await parts.vault.get(stored.artefactId, contentKey)
    return content === undefined ? undefined : tokensFromBytes(content)
  } catch (error) {
    parts.log.debug('kept token ids cannot be read', { err: error })
    return undefined
  }
}

/** How long LMCache may take for one answer before it counts as not answering. */
const answerMs = 1_000

const fetchToPod = async (
  parts: Parts,
  { pod, kv, stored }: Load,
  tokens: Uint32Array | undefined,
): Promise<KvPresence> => {
  const [instance, entries] = await Promise.all([
    parts.instances.of(pod, AbortSignal.timeout(answerMs)),
    parts.lmcache.locate(objectKeysOf(stored, stored.chunks), AbortSignal.timeout(answerMs)),
  ])
  const count = (isThere: (entry: DirectoryEntry) => boolean): number =>
    Math.floor(leading(entries, isThere) / stored.pieces.length) * stored.chunkTokens
  // Of what the engine stored after the first turn of a fleet without events only the amount is known: it finds that by itself.
  const isNamed = namedTokens(stored) >= kv.tokens
  if (tokens === undefined) {
    const listed = count(({ placements }) => placements.length > 0)
    return listed === 0 ? { kind: 'missing' } : { kind: 'on-demand', tokens: isNamed ? listed : kv.tokens }
  }
  if (instance === undefined) throw new LmcacheFault('no LMCache instance is registered for the pod')
  const beside = count(({ placements }) =>
    placements.some(({ tier, instance_id }) => tier === 'l1' && instance_id === instance.id),
  )
  if (beside >= namedTokens(stored)) {
    return isNamed ? { kind: 'resident', tokens: beside, tier: 'cpu' } : { kind: 'on-demand', tokens: kv.tokens }
  }

  // Also of what the directory does not list: a coordinator that was started anew has forgotten it, the store has not.
  const prefix = { modelRoot: stored.modelRoot, salt: stored.salt, tokens: tokens.subarray(0, namedTokens(stored)) }
  const requestId = await parts.lmcache.prefetch(prefix, instance.id, AbortSignal.timeout(answerMs))
  const found = requestId === undefined ? 0 : await untilLoaded(parts, instance.id, requestId)
  const loaded = Math.floor(found / stored.pieces.length) * stored.chunkTokens
  if (loaded === 0) return { kind: 'missing' }
  return isNamed ? { kind: 'loaded', tokens: loaded, loadMs: 0 } : { kind: 'on-demand', tokens: kv.tokens }
}

const firstPollMs = 2
const longestPollMs = 25

/** How many pieces arrived. Followed to its end, whoever waits: LMCache forgets a prefetch only when somebody saw that. */
const untilLoaded = async (parts: Parts, instanceId: string, requestId: string): Promise<number> => {
  const limit = AbortSignal.timeout(parts.limits.callTimeoutMs)
  for (let waitMs = firstPollMs; ; waitMs = Math.min(waitMs * 1.5, longestPollMs)) {
    const state = await parts.lmcache.prefetchState(instanceId, requestId, AbortSignal.timeout(answerMs))
    if (state.kind === 'completed') return state.foundKeys
    await pause(waitMs, limit)
  }
}
