import { untilAborted } from '../../async/deadline.ts'
import { lifeOf } from '../cache-salts.ts'
import type { KvArtefact, KvMiss, KvPresence, Prepared, StartingTurn } from '../kv-connector.ts'
import { saltOf } from './claim.ts'
import { type DirectoryEntry, LmcacheFault } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { leading, objectKeysOf, parseStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** How long LMCache may take for one answer before it counts as not answering. */
const answerMs = 1_000

/**
 * Body member that makes vLLM (0.32 or later) report a turn's whole chain of blocks under its `session_id`, also blocks that were cached before.
 * Replaces a client's own `vllm_xargs`.
 */
export const reportWholeTurn = { vllm_xargs: { kv_cache_report_mode: 'full' } } as const

/** Gives the turn its salt, and looks what of the session's KV its pod can load. The engine loads by itself. */
export const prepare = async (parts: Parts, turn: StartingTurn, signal: AbortSignal): Promise<Prepared> => {
  if (!parts.pods().includes(turn.pod)) throw new Error('the pod is not configured')
  const [engine, store] = await Promise.all([parts.engines.of(turn.pod, turn.model, signal), parts.identity.name()])
  const { hasEvents, ...facts } = { ...engine, store }
  if (!hasEvents) return withoutEvents(parts, turn)
  const prefix = turn.stored === undefined ? undefined : parseStoredPrefix(turn.stored.payload)
  const life = parts.isolation === 'session' ? lifeOf(turn, prefix?.life) : ''
  const salt = saltOf(parts, turn, { ...facts, life })
  const presence = await presenceOf(parts, turn, { prefix, salt, signal })
  // What is not listed is stored again.
  const isMissing = presence.kind === 'miss' && presence.reason === 'kv_missing'
  const isBase = turn.stored !== undefined && prefix?.salt === salt && !isMissing
  return {
    presence,
    fields: { cache_salt: salt, session_id: turn.turnId, ...reportWholeTurn },
    claim: { ...facts, life, ...(isBase ? { base: baseOf(prefix, turn.stored) } : {}) },
  }
}

/** Nobody could name what is stored, to delete it. Under a salt of the session's life, nobody reaches it afterwards. */
const withoutEvents = ({ salts }: Parts, turn: StartingTurn): Prepared => {
  const { tenant, model, session: key } = turn
  const session = { key, life: lifeOf(turn, undefined) }
  const fields = { cache_salt: salts.of({ tenant, session, model, fingerprint: '' }) }
  return { presence: miss('engine_cache'), fields, notStored: 'engine_cache' }
}

const baseOf = ({ chunks, chunkTokens }: StoredPrefix, { tokens }: KvArtefact) => {
  const arrived = chunks.slice(0, Math.floor(tokens / chunkTokens))
  return { chunks: arrived.length, lastChunk: arrived.at(-1) ?? '' }
}

/**
 * What of the session's KV the pod's engine will find: in its own cache, in the memory beside it, or in the store. `prefix`: what the artefact's
 * payload says; undefined: it cannot be read. Answers when `signal` fires.
 */
const presenceOf = async (
  parts: Parts,
  { pod, stored }: StartingTurn,
  { prefix, salt, signal }: { prefix: StoredPrefix | undefined; salt: string; signal: AbortSignal },
): Promise<KvPresence> => {
  if (stored === undefined) return miss('nothing_stored')
  // Without chunks: of a version that did without KV events.
  if (prefix?.salt !== salt || prefix.chunks.length === 0) return miss('kv_incompatible')
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
    parts.instances.of(pod, AbortSignal.timeout(answerMs)),
    parts.lmcache.locate(objectKeysOf(stored, stored.chunks), AbortSignal.timeout(answerMs)),
  ])
  if (instance === undefined) throw new LmcacheFault('no LMCache instance is registered for the pod')
  const isBeside = ({ placements }: DirectoryEntry): boolean =>
    placements.some(({ tier, instance_id }) => tier === 'l1' && instance_id === instance.id)
  const isStored = ({ placements }: DirectoryEntry): boolean => placements.some(({ tier }) => tier === 'l2')
  const tokensOf = (isThere: (entry: DirectoryEntry) => boolean): number =>
    Math.floor(leading(entries, isThere) / stored.pieces.length) * stored.chunkTokens
  const tokens = tokensOf((entry) => isBeside(entry) || isStored(entry))
  // A coordinator that was started anew lists it again when an engine reports it.
  if (tokens === 0) return miss('kv_missing')
  return { kind: 'hit', tier: tokensOf(isBeside) === tokens ? 'cpu' : 'store', tokens }
}
