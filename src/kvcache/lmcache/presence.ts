import { untilAborted } from '../../async/deadline.ts'
import type { StoredKv } from '../../sessions/session-record.ts'
import type { KvPresence } from '../kv-connector.ts'
import type { DirectoryEntry } from './lmcache-answers.ts'
import { LmcacheFault } from './lmcache-client.ts'
import type { Parts } from './parts.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { objectKeysOf, type StoredPrefix } from './stored-prefix.ts'

/** How long LMCache may take for one answer before it counts as not answering. */
const answerMs = 1_000

/** How many leading items are there. */
export const leading = <T>(items: readonly T[], isThere: (item: T) => boolean): number => {
  const firstMissing = items.findIndex((item) => !isThere(item))
  return firstMissing === -1 ? items.length : firstMissing
}

/** What of the session's KV the pod's engine will find: in its own cache, in the memory beside it, or in the store. Answers when `signal` fires. */
export const presenceOf = async (
  parts: Parts,
  session: {
    readonly pod: string
    readonly kv: StoredKv | undefined
    readonly stored: StoredPrefix | undefined
    /** The salt of the turn. */
    readonly salt: string
  },
  signal: AbortSignal,
): Promise<KvPresence> => {
  const { pod, kv, stored, salt } = session
  if (kv === undefined) return { kind: 'empty' }
  if (stored === undefined || stored.salt !== salt) return { kind: 'incompatible' }
  const inEngine = Math.min(kv.tokens, parts.events.residentTokens(pod, stored.turnId))
  if (inEngine > 0 && inEngine === kv.tokens) return { kind: 'resident', tokens: inEngine }
  if (!parts.breaker.isClosed()) return { kind: 'unavailable', cause: new StoreUnavailableFault() }
  const look = () => (stored.chunks.length === 0 ? lookAtSalt(parts, stored, kv) : lookAtChunks(parts, stored, pod))
  const presence = parts.breaker.run(look).catch((cause: unknown): KvPresence => ({ kind: 'failed', cause }))
  return untilAborted(presence, signal, (): KvPresence => ({ kind: 'timed-out' }))
}

const lookAtChunks = async (parts: Parts, stored: StoredPrefix, pod: string): Promise<KvPresence> => {
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
  if (tokens === 0) return { kind: 'missing', isKept: true }
  return tokensOf(isBeside) === tokens ? { kind: 'resident', tokens, tier: 'cpu' } : { kind: 'on-demand', tokens }
}

const lookAtSalt = async (parts: Parts, { salt }: StoredPrefix, { tokens }: StoredKv): Promise<KvPresence> => {
  const bytes = await parts.lmcache.usageBytes(salt, AbortSignal.timeout(answerMs))
  return bytes > 0 ? { kind: 'on-demand', tokens } : { kind: 'missing', isKept: true }
}
