import { untilAborted } from '../../async/deadline.ts'
import { lifeOf } from '../cache-salts.ts'
import type { KvArtefact, KvMiss, KvPresence, Prepared, StartingTurn } from '../kv-connector.ts'
import { saltOf } from './claim.ts'
import type { DirectoryEntry } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { objectKeysOf, parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Makes vLLM (0.32 or later) report a turn's whole chain of blocks, cached ones too. A client's own is replaced. */
export const reportWholeTurn = { vllm_xargs: { kv_cache_report_mode: 'full' } } as const

/** Gives the turn its salt, and looks what of the session's KV its pod can load. The engine loads by itself. */
export const prepare = async (parts: Parts, turn: StartingTurn, signal: AbortSignal): Promise<Prepared> => {
  if (!parts.pods().includes(turn.pod)) throw new Error('the pod is not configured')
  const prefix = turn.stored === undefined ? undefined : parseStoredPrefix(turn.stored.payload)
  // Side by side: whether the engine can use what the store lists is known when both have answered.
  const [engine, store, listed] = await Promise.all([
    parts.engines.of(turn.pod, turn.model, signal),
    parts.identity.name(),
    presenceOf(parts, turn, prefix, signal),
  ])
  const { hasEvents, ...facts } = { ...engine, store }
  if (!hasEvents)
    return { presence: miss('engine_cache'), fields: fieldsOfLife(parts, turn), notStored: 'engine_cache' }
  const life = parts.isolation === 'session' ? lifeOf(turn, prefix?.life) : ''
  const salt = saltOf(parts, turn, { ...facts, life })
  const base = turn.stored !== undefined && prefix?.salt === salt ? baseOf(prefix, turn.stored) : undefined
  const presence = turn.stored === undefined || base !== undefined ? listed : miss('kv_incompatible')
  // What is not listed is stored again.
  const isMissing = presence.kind === 'miss' && presence.reason === 'kv_missing'
  return {
    presence,
    fields: { cache_salt: salt, session_id: turn.turnId, ...reportWholeTurn },
    claim: { ...facts, life, beganAtMs: Date.now(), ...(base === undefined || isMissing ? {} : { base }) },
  }
}

/** For a turn whose KV nobody could name, to delete it: nobody reaches it after the session's present life. */
export const fieldsOfLife = ({ salts }: Parts, turn: StartingTurn) => {
  const { tenant, model, session: key } = turn
  return { cache_salt: salts.of({ tenant, session: { key, life: lifeOf(turn, undefined) }, model, fingerprint: '' }) }
}

const baseOf = ({ chunks, chunkTokens }: StoredPrefix, { tokens }: KvArtefact) => {
  const arrived = chunks.slice(0, Math.floor(tokens / chunkTokens))
  return { chunks: arrived.length, lastChunk: arrived.at(-1) ?? '' }
}

/** Where the pod's engine will find the session's KV, and how much of it. Answers when `signal` fires. */
const presenceOf = async (
  parts: Parts,
  { pod, stored }: StartingTurn,
  prefix: StoredPrefix | undefined,
  signal: AbortSignal,
): Promise<KvPresence> => {
  if (stored === undefined) return miss('nothing_stored')
  // Without chunks: of a version that did without KV events.
  if (prefix === undefined || prefix.chunks.length === 0) return miss('kv_incompatible')
  const inEngine = Math.min(stored.tokens, parts.events.residentTokens(pod, prefix.turnId))
  if (inEngine > 0 && inEngine === stored.tokens) return { kind: 'hit', tier: 'gpu', tokens: inEngine }
  if (!parts.breaker.isClosed()) return miss('kv_store_unavailable', new StoreUnavailableFault())
  const presence = parts.breaker
    .run(() => lookAt(parts, prefix, pod))
    .catch((cause: unknown) => miss('load_failed', cause))
  return untilAborted(presence, signal, () => miss('load_timeout'))
}

const miss = (reason: KvMiss['reason'], cause?: unknown): KvMiss => ({ kind: 'miss', reason, cause })

const lookAt = async (parts: Parts, stored: StoredPrefix, pod: string): Promise<KvPresence> => {
  const [instance, entries] = await Promise.all([
    parts.instances.of(pod, AbortSignal.timeout(parts.answerMs)),
    parts.lmcache.locate(objectKeysOf(stored, stored.chunks), AbortSignal.timeout(parts.answerMs)),
  ])
  // Of one that is not registered no memory is known, which is no fault of the store.
  if (instance === undefined) parts.log.debug('no LMCache instance is registered for the pod', { pod })
  const isBeside = ({ placements }: DirectoryEntry): boolean =>
    placements.some(({ tier, instance_id }) => tier === 'l1' && instance_id === instance?.id)
  const isStored = ({ placements }: DirectoryEntry): boolean => placements.some(({ tier }) => tier === 'l2')
  const tokensOf = (isThere: (entry: DirectoryEntry) => boolean): number =>
    Math.floor([...entries.map(isThere), false].indexOf(false) / stored.pieces.length) * stored.chunkTokens
  const tokens = tokensOf((entry) => isBeside(entry) || isStored(entry))
  // A coordinator that was started anew lists only what is written from then on.
  if (tokens === 0) return miss('kv_missing')
  return { kind: 'hit', tier: tokensOf(isBeside) === tokens ? 'cpu' : 'store', tokens }
}
