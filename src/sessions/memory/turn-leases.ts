import { maxLeases } from '../limits.ts'

/** A running turn's lease of its session. A session nearly always has none or one, so they are in a list. */
export interface TurnLease {
  readonly turnId: string
  readonly untilMs: number
}

/** Shared by all sessions between their turns. */
const noLeases: readonly TurnLease[] = []

export const leaseOf = (
  { turnId, leaseMs }: { readonly turnId: string; readonly leaseMs: number },
  nowMs: number,
): TurnLease => ({ turnId, untilMs: nowMs + leaseMs })

/** Adds a lease, or keeps its later end. Those that have run out go and, of too many, the one that ends first. */
export const takeLease = (leases: readonly TurnLease[], lease: TurnLease, nowMs: number): readonly TurnLease[] => {
  if (leases.length === 0) return [lease]
  const earlier = leases.find(({ turnId }) => turnId === lease.turnId)
  const kept = leases.filter(({ turnId, untilMs }) => untilMs > nowMs && turnId !== lease.turnId)
  if (kept.length >= maxLeases) kept.splice(endsFirst(kept), 1)
  kept.push(earlier !== undefined && earlier.untilMs > lease.untilMs ? earlier : lease)
  return kept
}

export const releaseLease = (leases: readonly TurnLease[], turnId: string): readonly TurnLease[] => {
  const left = leases.filter((lease) => lease.turnId !== turnId)
  return left.length === 0 ? noLeases : left
}

export const holdsLease = (leases: readonly TurnLease[], turnId: string): boolean =>
  leases.some((lease) => lease.turnId === turnId)

/** When the last lease ends; 0 without any. */
export const heldUntilMs = (leases: readonly TurnLease[]): number =>
  leases.reduce((latestMs, { untilMs }) => Math.max(latestMs, untilMs), 0)

const endsFirst = (leases: readonly TurnLease[]): number =>
  leases.reduce((first, { untilMs }, at) => (untilMs < (leases[first]?.untilMs ?? 0) ? at : first), 0)

/** What a session's expiry depends on. */
interface Expiring {
  readonly state: 'creating' | 'active'
  readonly expiresAtMs: number
  readonly leases: readonly TurnLease[]
}

/** When a session is due to expire. In state *creating* it lives as long as its turn's lease. */
export const dueMsOf = (session: Expiring): number =>
  session.state === 'creating' ? heldUntilMs(session.leases) : session.expiresAtMs

/** A session expires at the earliest when no turn holds it. */
export const hasExpired = (session: Expiring, nowMs: number): boolean =>
  dueMsOf(session) <= nowMs && heldUntilMs(session.leases) <= nowMs
