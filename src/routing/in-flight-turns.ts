import type { PodAddress } from './pod.ts'

/** Counts the turns that run on each pod. A turn whose end is not reported is dropped after its lease. */
export interface InFlightTurns {
  /** Counts a turn once; a second call renews its lease. */
  started(address: PodAddress, turnId: string): void
  ended(address: PodAddress, turnId: string): void
  count(address: PodAddress): number
}

/** Turns of one pod; above this, the oldest is dropped. */
const maxTurnsPerPod = 65_536

/** `nowMs` is a monotonic clock. */
export const createInFlightTurns = (options: {
  readonly turnLeaseMs: number
  readonly nowMs: () => number
}): InFlightTurns => {
  /** Expiry by turn id. All leases are equally long, so the order of starts is the order of expiry. */
  const expiriesByPod = new Map<PodAddress, Map<string, number>>()

  const dropExpired = (expiries: Map<string, number>): void => {
    const now = options.nowMs()
    for (const [turnId, expiresAtMs] of expiries) {
      if (expiresAtMs > now && expiries.size <= maxTurnsPerPod) return
      expiries.delete(turnId)
    }
  }

  return {
    started: (address, turnId) => {
      const expiries = expiriesByPod.get(address) ?? new Map<string, number>()
      expiriesByPod.set(address, expiries)
      expiries.delete(turnId)
      expiries.set(turnId, options.nowMs() + options.turnLeaseMs)
      dropExpired(expiries)
    },
    ended: (address, turnId) => {
      const expiries = expiriesByPod.get(address)
      expiries?.delete(turnId)
      if (expiries?.size === 0) expiriesByPod.delete(address)
    },
    count: (address) => {
      const expiries = expiriesByPod.get(address)
      if (expiries === undefined) return 0
      dropExpired(expiries)
      return expiries.size
    },
  }
}
