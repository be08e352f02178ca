import { withinLimit } from '../../async/deadline.ts'
import type { KvTurn } from '../kv-connector.ts'
import { parseClaim, saltOf } from './claim.ts'
import { deleteUnheld } from './delete-everywhere.ts'
import { namePrefix } from './offload.ts'
import type { Parts } from './parts.ts'

/** Events come within some milliseconds of the answer. */
const silenceMs = 250

/**
 * Deletes what a turn left that failed or whose session is gone: the chunks that no artefact holds. Never rejects: what stays, because LMCache or
 * the turn's events were away, leaves by LMCache's LRU.
 */
export const detach = async (parts: Parts, turn: KvTurn, text: string, signal: AbortSignal): Promise<void> => {
  const claim = parseClaim(text)
  if (claim === undefined) return
  const { pod, turnId } = turn
  try {
    if (!claim.hasEvents) {
      const stored = { artefactId: turnId, turnId, salt: saltOf(parts, turn, claim), chunks: [], ...nowhere, ...claim }
      await deleteUnheld(parts, stored, signal)
      return
    }
    const tokens = await withinLimit(
      silenceMs,
      (limited) => parts.events.turnTokens(pod, { turnId, minTokens: 1 }, limited),
      signal,
    )
    const left = tokens === undefined ? undefined : await namePrefix(parts, turn, { claim, tokens }, signal)
    if (left !== undefined) await deleteUnheld(parts, left, signal)
  } catch (error) {
    parts.log.debug('KV of a failed turn was not deleted', { err: error })
  }
}

const nowhere = { pieces: [], chunkTokens: 1 } as const
