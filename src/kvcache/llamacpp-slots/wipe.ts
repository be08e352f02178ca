import { randomUUID } from 'node:crypto'
import type { SessionKey } from '../../sessions/session-record.ts'
import type { ActionEnd, TouchedSlot } from '../slots/slot-client.ts'
import { lookAtSlot } from './look.ts'
import { loadMsOf, type Parts } from './parts.ts'

export interface Wipe {
  readonly pod: string
  readonly slot: number
  /** Whose KV has to go. Undefined: whatever lies in a slot that the ledger does not know or does not trust. */
  readonly session: SessionKey | undefined
}

export type WipeOutcome =
  /** `tokens`: how many were there. */
  | { readonly kind: 'wiped'; readonly tokens: number }
  /** There was nothing to wipe. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'busy'; readonly reason: string }

/** Empties a slot while no turn uses it. Safe to repeat; a cleaner that dies in between leaves the slot marked as unknown. */
export const wipeSlot = async (parts: Parts, wipe: Wipe, signal: AbortSignal): Promise<WipeOutcome> => {
  const place = { pod: wipe.pod, slot: wipe.slot, turnId: `wipe-${randomUUID()}` }
  const seized = await parts.ledger.seize({ ...place, session: wipe.session, leaseMs: loadMsOf(parts.limits) })
  switch (seized) {
    case 'nothing-to-do':
      return { kind: 'gone' }
    case 'in-use':
      return { kind: 'busy', reason: 'a turn uses the slot' }
    case 'seized':
      return eraseSeized(parts, place, signal)
  }
}

interface Seized {
  readonly pod: string
  readonly slot: number
  readonly turnId: string
}

const eraseSeized = async (parts: Parts, place: Seized, signal: AbortSignal): Promise<WipeOutcome> => {
  const view = await lookAtSlot(parts, place, signal)
  if (view.kind === 'failed') return giveBack(parts, place, 'the pod does not answer')
  if (view.kind === 'no-such-slot') return finish(parts, place, 0)
  if (view.slot.busy) return giveBack(parts, place, 'the slot is busy')
  if (view.slot.tokens === 0) return finish(parts, place, 0)
  const end = await parts.client.erase(place, signal)
  switch (end.kind) {
    case 'done':
      return finish(parts, place, end.value.tokens)
    case 'late':
      return followLate(parts, place, end.end)
    case 'refused':
    case 'unsent':
    case 'unknown':
      return giveBack(parts, place, 'the engine did not erase the slot')
  }
}

/** The slot stays closed until the engine has answered; the next try finds it empty then. */
const followLate = async (parts: Parts, place: Seized, late: Promise<ActionEnd<TouchedSlot>>): Promise<WipeOutcome> => {
  await parts.ledger.settle({ ...place, content: { kind: 'unknown' }, closeMs: parts.limits.lateTimeoutMs })
  const open = async (): Promise<void> => {
    if ((await late).kind !== 'unknown') await parts.ledger.release({ ...place, content: { kind: 'unknown' } })
  }
  parts.background.run('late wipe', open())
  return { kind: 'busy', reason: 'the engine is late' }
}

const finish = async (parts: Parts, place: Seized, tokens: number): Promise<WipeOutcome> => {
  if (await parts.ledger.wiped(place)) return { kind: 'wiped', tokens }
  return { kind: 'busy', reason: 'wiping took too long' }
}

const giveBack = async (parts: Parts, place: Seized, reason: string): Promise<WipeOutcome> => {
  await parts.ledger.release(place)
  return { kind: 'busy', reason }
}
