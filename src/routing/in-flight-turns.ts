import type { PodAddress } from './pod.ts'

/** Counts the turns that run on each pod. A turn whose end is never told is forgotten when its lease has run out. */
export interface InFlightTurns {
  /** Counts a turn once, however often it is told; its lease then runs anew. */
  started(address: PodAddress, turnId: string): void
  ended(address: PodAddress, turnId: string): void
  count(address: PodAddress): number
}

/** `nowMs` is a clock that never goes back. */
export const createInFlightTurns = (options: {
  readonly turnLeaseMs: number
  readonly nowMs: () => number
}): InFlightTurns => {
  // All leases are equally long, so that a map in the order of starts is in the order of expiry, too.
  const expiriesByPod = new Map<PodAddress, Map<string, number>>()

  const forget = (address: PodAddress, expiries: Map<string, number>, turnId: string): void => {
    expiries.delete(turnId)
    if (expiries.size === 0) expiriesByPod.delete(address)
  }

  const forgetExpired = (address: PodAddress, expiries: Map<string, number>): void => {
    const now = options.nowMs()
    for (const [turnId, expiresAtMs] of expiries) {
      if (expiresAtMs > now) return
      forget(address, expiries, turnId)
    }
  }

  return {
    started: (address, turnId) => {
      const expiries = expiriesByPod.get(address) ?? new Map<string, number>()
      forgetExpired(address, expiries)
      expiries.delete(turnId)
      expiries.set(turnId, options.nowMs() + options.turnLeaseMs)
      expiriesByPod.set(address, expiries)
    },
    ended: (address, turnId) => {
      const expiries = expiriesByPod.get(address)
      if (expiries !== undefined) forget(address, expiries, turnId)
    },
    count: (address) => {
      const expiries = expiriesByPod.get(address)
      if (expiries === undefined) return 0
      forgetExpired(address, expiries)
      return expiries.size
    },
  }
}
