/** The turns that are under way on one session. Nearly always none or one, so a list. */
export interface TurnLease {
  readonly turnId: string
  readonly untilMs: number
}

/** The leases with this one taken, or taken again: the later end holds. Those that have run out by `nowMs` go. */
export const takeLease = (leases: readonly TurnLease[], lease: TurnLease, nowMs: number): readonly TurnLease[] => {
  const earlier = leases.find(({ turnId }) => turnId === lease.turnId)
  return [
    ...leases.filter(({ turnId, untilMs }) => untilMs > nowMs && turnId !== lease.turnId),
    { ...lease, untilMs: Math.max(lease.untilMs, earlier?.untilMs ?? 0) },
  ]
}

export const releaseLease = (leases: readonly TurnLease[], turnId: string): readonly TurnLease[] =>
  leases.filter((lease) => lease.turnId !== turnId)

export const holdsLease = (leases: readonly TurnLease[], turnId: string): boolean =>
  leases.some((lease) => lease.turnId === turnId)

/** When the last lease ends; 0 without any. */
export const heldUntilMs = (leases: readonly TurnLease[]): number =>
  leases.reduce((latest, { untilMs }) => Math.max(latest, untilMs), 0)
