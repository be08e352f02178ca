import { randomInt } from 'node:crypto'
import type { SlotContent } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import type { TasksBySlot } from './claim.ts'

const maxTurnMark = 2 ** 30

/**
 * A number that llama-server takes as `n_keep` and repeats with the slot, so that a turn is known there by more than the number of its tokens,
 * and without any `usage`. It only has an effect with `--context-shift`, which does not go together with stored KV anyway.
 */
export const newTurnMark = (): number => randomInt(1, maxTurnMark)

/** What the engine says of a slot that changes whenever something runs there, or the engine starts anew. */
export const markOf = (boot: string, seen: SlotSnapshot): string => JSON.stringify([boot, seen.task, seen.tokens])

/** Whether the slot still holds what the ledger says, by the engine's own report. */
export const stillHolds = (
  content: Extract<SlotContent, { kind: 'holds' }>,
  seen: SlotSnapshot,
  boot: string,
): boolean => {
  if (seen.busy) return false
  // An engine that says nothing at all may have been started anew.
  const isTelling = boot !== '' || seen.task !== undefined
  return isTelling && content.mark === markOf(boot, seen)
}

/** Whether the ledger knows everything that ran in the slot. Call it for an idle slot that no turn uses. */
export const isAccountedFor = (
  entry: { readonly kind: SlotContent['kind']; readonly mark: string | undefined },
  seen: SlotSnapshot,
  boot: string,
): boolean => (entry.kind === 'holds' ? entry.mark === markOf(boot, seen) : (seen.tokens ?? 0) === 0)

/**
 * Which slots may hold what a turn left that ran in no slot of its own. The number of tokens decides; where that is
 * unknown, any slot in which something ran since; and where even that is unknown, nothing can be said.
 */
export const perhapsLeftBy = (
  turn: {
    readonly tasksBefore: TasksBySlot | undefined
    readonly totalTokens: number | undefined
  },
  slots: readonly SlotSnapshot[],
): readonly SlotSnapshot[] =>
  slots.filter((seen) => {
    const taskBefore = turn.tasksBefore?.[String(seen.id)]
    if (turn.totalTokens !== undefined) {
      return wasLeftBy({ ...turn, taskBefore, turnMark: undefined }, seen)
    }
    return turn.tasksBefore !== undefined && seen.task !== undefined && seen.task !== taskBefore
  })

/**
 * Whether what an idle slot holds was left by this very turn, and not by something that ran there unasked. The engine repeats the
 * turn's mark; where it does not, number of tokens and task must fit.
 */
export const wasLeftBy = (
  turn: {
    readonly taskBefore: number | undefined
    readonly turnMark: number | undefined
    readonly totalTokens: number | undefined
  },
  seen: SlotSnapshot,
): boolean => {
  if (seen.tokens === undefined || seen.task === undefined || seen.task === turn.taskBefore) return false
  const isMarked = turn.turnMark !== undefined && seen.keep !== undefined
  if (isMarked && seen.keep !== turn.turnMark) return false
  if (turn.totalTokens === undefined) return isMarked
  // The last token of an answer is chosen, but never computed; so it is usually not in the KV.
  return seen.tokens === turn.totalTokens || seen.tokens === turn.totalTokens - 1
}
