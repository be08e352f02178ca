import type { BeginOutcome } from '../session-store.ts'
import type { Tombstone } from './memory-session.ts'
import { type TurnLease, takeLease } from './turn-leases.ts'

/** Begins a turn that may revive an expired session, whose tombstone stays at least as long. */
export const beginExpired = (tombstone: Tombstone, lease: TurnLease, nowMs: number): BeginOutcome => {
  tombstone.leases = takeLease(tombstone.leases, lease, nowMs)
  tombstone.forgetAtMs = Math.max(tombstone.forgetAtMs, lease.untilMs)
  const { ttlSeconds, model, cause } = tombstone
  return { kind: 'expired', ttlSeconds, model, cause, nowMs }
}
