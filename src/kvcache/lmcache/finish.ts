import { nanoid } from 'nanoid'
import { withinLimit } from '../../async/deadline.ts'
import { artefactIdFor } from '../artefact-id.ts'
import type { EndedTurn, FinishOutcome, KvTurn } from '../kv-connector.ts'
import type { NotStoredReason } from '../reasons.ts'
import { untilArrived, untilGrown } from './arrived-chunks.ts'
import { type Claim, parseClaim, saltOf } from './claim.ts'
import type { Parts } from './parts.ts'
import { StoreUnavailableFault } from './store-breaker.ts'
import { encodeStoredPrefix, heldChunks, type StoredPrefix } from './stored-prefix.ts'

/** Finds out what of a turn's KV the engine wrote to the store, and holds it. */
export const finish = async (parts: Parts, turn: EndedTurn): Promise<FinishOutcome<NotStoredReason>> => {
  const claim = parseClaim(turn.claim)
  if (claim === undefined) return { kind: 'none', reason: 'not_attached' }
  if (!parts.breaker.isClosed()) {
    return { kind: 'none', reason: 'kv_store_unavailable', cause: new StoreUnavailableFault() }
  }
  return claim.hasEvents ? confirmChunks(parts, turn, claim) : confirmSalt(parts, turn, claim)
}

const confirmChunks = async (parts: Parts, turn: EndedTurn, claim: Claim): Promise<FinishOutcome<NotStoredReason>> => {
  const { totalTokens, signal } = turn
  const fewest = Math.max(parts.minTokens, await parts.instances.chunkTokens(signal))
  if (totalTokens !== undefined && totalTokens < fewest) return { kind: 'none', reason: 'too_short' }
  const tokens = await tokensOfTurn(parts, turn, claim)
  if (tokens === undefined) {
    return claim.base === undefined ? { kind: 'none', reason: 'tokens_unknown' } : { kind: 'unchanged' }
  }
  const stored = await parts.breaker.run(() => namePrefix(parts, turn, { claim, tokens }, signal))
  if (stored === undefined || tokens.length < fewest) return { kind: 'none', reason: 'too_short' }
  // Equal chunks have equal chunks before them.
  const { chunks: known, lastChunk } = claim.base ?? { chunks: 0, lastChunk: '' }
  const isGrown = known > 0 && stored.chunks[known - 1] === lastChunk
  if (isGrown && known === stored.chunks.length) return { kind: 'unchanged' }
  const payload = await announce(parts, turn, stored)
  const arrived = await untilArrived(parts, turn, { stored, known: isGrown ? known : 0 })
  if (arrived.chunks === 0) return { kind: 'none', reason: 'not_stored' }

  const { artefactId, chunkTokens } = stored
  return { kind: 'stored', artefactId, payload, tokens: arrived.chunks * chunkTokens, bytes: arrived.bytes }
}

/**
 * The tokens of the longest prefix whose KV a turn is known to have left in its pod, by the pod's events. Undefined: nobody can tell. The last token of
 * an answer was never computed, so all blocks before it are to be expected.
 */
const tokensOfTurn = (parts: Parts, turn: EndedTurn, claim: Claim): Promise<Uint32Array | undefined> => {
  const { totalTokens } = turn
  const expected = totalTokens === undefined ? 1 : Math.floor((totalTokens - 1) / claim.blockTokens) * claim.blockTokens
  return withinLimit(
    parts.settleMs,
    (signal) => parts.events.turnTokens(turn.pod, { turnId: turn.turnId, minTokens: expected }, signal),
    turn.signal,
  )
}

/**
 * Without events chunks have no names: the artefact stands for all KV under the session's own salt. It counts the tokens of the turn that stored it;
 * what later turns add lies under the same salt, so that nothing new is to be recorded.
 */
const confirmSalt = async (parts: Parts, turn: EndedTurn, claim: Claim): Promise<FinishOutcome<NotStoredReason>> => {
  const { promptTokens, signal } = turn
  if (claim.base !== undefined) return { kind: 'unchanged' }
  if (promptTokens === undefined) return { kind: 'none', reason: 'tokens_unknown' }
  const chunkTokens = await parts.instances.chunkTokens(signal)
  const tokens = Math.floor(promptTokens / chunkTokens) * chunkTokens
  if (tokens === 0 || tokens < parts.minTokens) return { kind: 'none', reason: 'too_short' }
  const stored = describePrefix(turn, claim, { salt: saltOf(parts, turn, claim), chunks: [], pieces: [], chunkTokens })
  const payload = await announce(parts, turn, stored)
  // The coordinator learns of what comes by and by.
  const bytes = await untilGrown(
    () => parts.lmcache.usageBytes(stored.salt, signal),
    (seen) => seen,
    { expected: 1, quietMs: 2 * parts.settleMs, pollMs: 250 },
    signal,
  )
  if (bytes === 0) return { kind: 'none', reason: 'not_stored' }
  return { kind: 'stored', artefactId: stored.artefactId, payload, tokens, bytes }
}

/** The names of a prefix's chunks; undefined where it is shorter than one. */
export const namePrefix = async (
  parts: Parts,
  turn: KvTurn,
  { claim, tokens }: { readonly claim: Claim; readonly tokens: Uint32Array },
  signal: AbortSignal,
): Promise<StoredPrefix | undefined> => {
  const salt = saltOf(parts, turn, claim)
  const { chunks, entries } = await parts.lmcache.lookup({ modelRoot: claim.modelRoot, salt, tokens }, signal)
  if (chunks === 0) return undefined
  const perChunk = entries.length / chunks
  return describePrefix(turn, claim, {
    salt,
    chunks: entries.filter((_entry, index) => index % perChunk === 0).map(({ key }) => key.chunk_hash_hex),
    pieces: entries.slice(0, perChunk).map(({ key }) => [key.kv_rank, key.object_group_id] as const),
    chunkTokens: await parts.instances.chunkTokens(signal),
  })
}

/** An artefact of the turn. */
export const describePrefix = (
  { session, turnId }: Pick<KvTurn, 'session' | 'turnId'>,
  { modelRoot, life }: Claim,
  stored: Pick<StoredPrefix, 'salt' | 'chunks' | 'pieces' | 'chunkTokens'>,
): StoredPrefix => ({ artefactId: artefactIdFor(session, nanoid()), turnId, modelRoot, life, ...stored })

/** Records the artefact, then holds its chunks, so that nobody deletes them; only then is it looked which of them are there. */
const announce = async (parts: Parts, turn: EndedTurn, stored: StoredPrefix): Promise<string> => {
  const payload = encodeStoredPrefix(stored)
  await turn.announce({ artefactId: stored.artefactId, payload })
  await parts.ledger.hold({ salt: stored.salt, name: stored.artefactId, chunks: heldChunks(stored) })
  return payload
}
