import { randomInt } from 'node:crypto'
import type { SessionKey } from '../../sessions/session-record.ts'
import type { SlotContent } from '../slots/slot-ledger.ts'
import type { SlotSnapshot } from '../slots/slot-snapshot.ts'
import type { TasksBySlot } from './claim.ts'

/** A session as engines name it: hex SHA-256 of the id, where the store has the same digest as base64url. */
export const engineSessionOf = (session: SessionKey): string => Buffer.from(session, 'base64url').toString('hex')

/** The way back. */
export const sessionKeyOfEngine = (engineSession: string): SessionKey =>
  Buffer.from(engineSession, 'hex').toString('base64url') as SessionKey

const maxTurnMark = 2 ** 30

/**
 * A number that llama-server takes as `n_keep` and repeats with the slot, so that a turn is known there by more than the number of its tokens,
 * and without any `usage`. It only has an effect with `--context-shift`, which does not go together with stored KV anyway. Undefined where the
 * engine tells sessions apart by itself.
 */
export const newTurnMark = (slots: readonly SlotSnapshot[]): number | undefined =>
  slots.every(({ session }) => session === undefined) ? randomInt(1, maxTurnMark) : undefined

/** What the engine says of a slot that changes whenever something runs there, or the engine starts anew. */
export const markOf = (boot: string, seen: SlotSnapshot): string => JSON.stringify([boot, seen.task, seen.tokens])

/** Whether the slot still holds what the ledger says, by the engine's own report. */
export const stillHolds = (
  content: Extract<SlotContent, { kind: 'holds' }>,
  seen: SlotSnapshot,
  known: { readonly boot: string; readonly session: SessionKey },
): boolean => {
  if (seen.busy) return false
  if (seen.session === engineSessionOf(known.session)) return (seen.tokens ?? 0) >= content.tokens
  // An engine that says nothing at all may have been started anew.
  const isTelling = known.boot !== '' || seen.task !== undefined
  return isTelling && content.mark === markOf(known.boot, seen)
}

/**
 * Which slots may hold what a turn left that ran in no slot of its own. Where the engine does not tell sessions apart, the number of tokens
 * decides; where that is unknown too, any slot in which something ran since; and where even that is unknown, nothing can be said.
 */
export const perhapsLeftBy = (
  turn: {
    readonly session: SessionKey
    readonly tasksBefore: TasksBySlot | undefined
    readonly totalTokens: number | undefined
  },
  slots: readonly SlotSnapshot[],
): readonly SlotSnapshot[] =>
  slots.filter((seen) => {
    const taskBefore = turn.tasksBefore?.[String(seen.id)]
    if (seen.session !== undefined || turn.totalTokens !== undefined) {
      return wasLeftBy({ ...turn, taskBefore, turnMark: undefined }, seen)
    }
    return turn.tasksBefore !== undefined && seen.task !== undefined && seen.task !== taskBefore
  })

/**
 * Whether what an idle slot holds was left by this very turn, and not by something that ran there unasked. An engine either says whose
 * session it served, or repeats the turn's mark; where it does neither, number of tokens and task must fit.
 */
export const wasLeftBy = (
  turn: {
    readonly session: SessionKey
    readonly taskBefore: number | undefined
    readonly turnMark: number | undefined
    readonly totalTokens: number | undefined
  },
  seen: SlotSnapshot,
): boolean => {
  if (seen.session !== undefined) return seen.session === engineSessionOf(turn.session)
  if (seen.tokens === undefined || seen.task === undefined || seen.task === turn.taskBefore) return false
  const isMarked = turn.turnMark !== undefined && seen.keep !== undefined
  if (isMarked && seen.keep !== turn.turnMark) return false
  if (turn.totalTokens === undefined) return isMarked
  // The last token of an answer is chosen, but never computed; so it is usually not in the KV.
  return seen.tokens === turn.totalTokens || seen.tokens === turn.totalTokens - 1
}
