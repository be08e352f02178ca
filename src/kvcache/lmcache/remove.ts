import { withinLimit } from '../../async/deadline.ts'
import type { KvRemoval, ReleasedTurn, RemoveOutcome } from '../kv-connector.ts'
import { parseClaim, saltOf } from './claim.ts'
import { deleteUnheld } from './delete-everywhere.ts'
import { describePrefix, namePrefix } from './finish.ts'
import type { Parts } from './parts.ts'
import { parseStoredPrefix } from './stored-prefix.ts'

/** Removes an artefact: the chunks that no other artefact needs. */
export const remove = async (
  parts: Parts,
  { payload = '' }: KvRemoval,
  signal: AbortSignal,
): Promise<RemoveOutcome> => {
  if (payload === '') return { kind: 'removed' }
  const stored = parseStoredPrefix(payload)
  if (stored === undefined) return { kind: 'foreign' }
  try {
    if (!(await deleteUnheld(parts, stored, signal))) return { kind: 'busy', reason: 'still_there' }
    return { kind: 'removed' }
  } catch (error) {
    parts.log.debug('KV could not be removed yet', { err: error })
    return { kind: 'busy', reason: 'kv_store_unavailable' }
  }
}

/** All events of a turn come within some milliseconds of its end. How many tokens they report is unknown. */
const eventsMs = 250

/**
 * Deletes what a turn left that failed or whose session is gone: the chunks that no artefact holds. What stays, because LMCache or the turn's events
 * were away, leaves by LMCache's own eviction.
 */
export const release = async (parts: Parts, turn: ReleasedTurn): Promise<void> => {
  const claim = parseClaim(turn.claim)
  if (claim === undefined) return
  const { pod, turnId, signal } = turn
  if (!claim.hasEvents) {
    const salt = saltOf(parts, turn, claim)
    await deleteUnheld(parts, describePrefix(turn, claim, { salt, chunks: [], pieces: [], chunkTokens: 1 }), signal)
    return
  }
  const tokens = await withinLimit(
    eventsMs,
    (limited) => parts.events.turnTokens(pod, { turnId, minTokens: Number.POSITIVE_INFINITY }, limited),
    signal,
  )
  const left = tokens === undefined ? undefined : await namePrefix(parts, turn, { claim, tokens }, signal)
  if (left !== undefined) await deleteUnheld(parts, left, signal)
}
