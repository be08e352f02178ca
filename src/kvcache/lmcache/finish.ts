import { nanoid } from 'nanoid'
import { withinLimit } from '../../async/deadline.ts'
import { artefactIdFor } from '../artefact-id.ts'
import type { EndedTurn, FinishOutcome, ReleasedTurn } from '../kv-connector.ts'
import type { NotStoredReason } from '../reasons.ts'
import { untilArrived } from './arrived-chunks.ts'
import { type Claim, parseClaim, saltOf } from './claim.ts'
import type { Parts } from './parts.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { encodeStoredPrefix, type StoredPrefix } from './stored-prefix.ts'

/** Finds out what of a turn's KV the engine wrote to the store, and holds it. */
export const finish = async (parts: Parts, turn: EndedTurn): Promise<FinishOutcome<NotStoredReason>> => {
  const claim = parseClaim(turn.claim)
  if (claim === undefined) return { kind: 'none', reason: 'not_attached' }
  if (!parts.breaker.isClosed()) {
    return { kind: 'none', reason: 'kv_store_unavailable', cause: new StoreUnavailableFault() }
  }
  const { pod, totalTokens, signal } = turn
  // Not kv.minTokens: the engine writes all whole chunks by itself, and what no artefact names is not deleted.
  const fewest = await parts.instances.chunkTokens(signal)
  if (totalTokens !== undefined && totalTokens < fewest) return { kind: 'none', reason: 'too_short' }
  const tokens = await tokensOfTurn(parts, turn, claim)
  if (tokens === undefined) {
    const cause = 'it did not report a turn, as vLLM 0.32 or later does'
    if (parts.events.isLive(pod, claim.beganAtMs)) parts.warnings.raiseOutage('kv_events_unavailable', pod, cause)
    return claim.base === undefined ? { kind: 'none', reason: 'tokens_unknown' } : { kind: 'unchanged' }
  }
  parts.warnings.clear('kv_events_unavailable', pod)
  const stored = await parts.breaker.run(() => namePrefix(parts, turn, { claim, tokens }))
  if (stored === undefined) return { kind: 'none', reason: 'too_short' }
  // Equal chunks have equal chunks before them.
  const { chunks: known, lastChunk } = claim.base ?? { chunks: 0, lastChunk: '' }
  const isGrown = known > 0 && stored.chunks[known - 1] === lastChunk
  if (isGrown && known === stored.chunks.length) return { kind: 'unchanged' }
  const { artefactId, chunkTokens, salt } = stored
  const payload = encodeStoredPrefix(stored)
  await turn.announce({ artefactId, payload })
  // Held before it is looked which of them are there, so that nobody deletes them meanwhile.
  await parts.ledger.hold({ salt, name: artefactId, chunks: stored.chunks })
  const arrived = await untilArrived(parts, turn, { stored, known: isGrown ? known : 0 })
  if (arrived.chunks === 0) return { kind: 'none', reason: 'not_stored' }
  return { kind: 'stored', artefactId, payload, tokens: arrived.chunks * chunkTokens, bytes: arrived.bytes }
}

/**
 * The tokens of the longest prefix whose KV a turn is known to have left in its pod, by the pod's events. Undefined:
 * nobody can tell. The last token of an answer was never computed, so all blocks before it are expected.
 */
const tokensOfTurn = (parts: Parts, turn: EndedTurn, claim: Claim): Promise<Uint32Array | undefined> => {
  const { pod, turnId, totalTokens: total } = turn
  const minTokens = total === undefined ? 1 : Math.floor((total - 1) / claim.blockTokens) * claim.blockTokens
  const wait = (signal: AbortSignal) => parts.events.turnTokens(pod, { turnId, minTokens }, signal)
  return withinLimit(parts.settleMs, wait, turn.signal)
}

/** An artefact of the turn, with the names of its chunks; undefined where it is shorter than one. */
export const namePrefix = async (
  parts: Parts,
  turn: ReleasedTurn,
  { claim, tokens }: { readonly claim: Claim; readonly tokens: Uint32Array },
): Promise<StoredPrefix | undefined> => {
  if (tokens.length === 0) return undefined
  const { modelRoot, life } = claim
  const salt = saltOf(parts, turn, claim)
  const { chunks, entries } = await parts.lmcache.lookup({ modelRoot, salt, tokens }, turn.signal)
  if (chunks === 0) return undefined
  const perChunk = entries.length / chunks
  return {
    artefactId: artefactIdFor(turn.session, nanoid()),
    turnId: turn.turnId,
    modelRoot,
    salt,
    life,
    chunks: entries.filter((_entry, index) => index % perChunk === 0).map(({ key }) => key.chunk_hash_hex),
    pieces: entries.slice(0, perChunk).map(({ key }) => [key.kv_rank, key.object_group_id] as const),
    chunkTokens: await parts.instances.chunkTokens(turn.signal),
  }
}
