import type { EndedTurn } from '../kv-connector.ts'
import type { SlotSnapshot } from '../slots/slot-client.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import type { SlotClaim } from './claim.ts'

/** What the engine reports of a slot that changes whenever something runs there, or the engine restarts. */
export const markOf = ({ task, tokens, keep }: SlotSnapshot): string => JSON.stringify([task, tokens, keep])

/** Whether the slot holds what the ledger says, by the engine's report. One that reports no task may have restarted. */
export const stillHolds = (content: SlotContent, seen: SlotSnapshot): boolean =>
  !seen.busy && seen.task !== undefined && content.mark === markOf(seen)

/** Whether the ledger knows whose KV an idle slot holds, if any. */
export const isAccountedFor = (content: SlotContent | undefined, seen: SlotSnapshot): boolean =>
  seen.tokens === 0 || content?.mark === markOf(seen)

/** Whether this very turn left what an idle slot holds: by its tag, which engines repeat, else by tokens and task. */
export const isFromTurn = (
  turn: Pick<SlotClaim, 'previousTask' | 'tag'> & Pick<EndedTurn, 'totalTokens'>,
  seen: SlotSnapshot,
): boolean => {
  if (seen.busy || seen.tokens === undefined || seen.task === undefined || seen.task === turn.previousTask) return false
  if (seen.keep !== undefined && seen.keep !== turn.tag) return false
  if (turn.totalTokens === undefined) return seen.keep === turn.tag
  // The last token of an answer is chosen, but usually not computed.
  return seen.tokens === turn.totalTokens || seen.tokens === turn.totalTokens - 1
}

/** Whether a turn that held no slot ran here: it is younger than all that ran before the turn, and repeats its tag. */
export const isFromUnheldTurn = (turn: Parameters<typeof isFromTurn>[0], seen: SlotSnapshot): boolean =>
  isFromTurn(turn, seen) && seen.keep === turn.tag && (seen.task ?? -1) > turn.previousTask
