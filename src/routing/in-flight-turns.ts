import { hashOfId, SlotMap } from '../collections/slot-map.ts'
import { maxTurnsPerPod } from './max-turns-per-pod.ts'
import type { PodAddress } from './pod.ts'

/** Counts the turns that run on each pod. A turn whose end is never told is forgotten when its lease has run out. */
export interface InFlightTurns {
  /** Counts a turn once, however often it is told; its lease then runs anew. */
  started(address: PodAddress, turnId: string): void
  ended(address: PodAddress, turnId: string): void
  count(address: PodAddress): number
}

/** Pods come and go; the tables of those that run nothing are kept for so many. */
const maxIdlePods = 64

/** `nowMs` is a clock that never goes back. */
export const createInFlightTurns = (options: {
  readonly turnLeaseMs: number
  readonly nowMs: () => number
}): InFlightTurns => {
  // All leases are equally long, so that a map in the order of starts is in the order of expiry, too.
  const expiriesByPod = new Map<PodAddress, SlotMap<string, number>>()

  const forgetExpired = (expiries: SlotMap<string, number>): void => {
    const now = options.nowMs()
    while ((expiries.oldest ?? Number.POSITIVE_INFINITY) <= now) expiries.deleteOldest()
  }

  const forgetIdlePod = (address: PodAddress, expiries: SlotMap<string, number>): void => {
    if (expiries.size === 0 && expiriesByPod.size > maxIdlePods) expiriesByPod.delete(address)
  }

  return {
    started: (address, turnId) => {
      const known = expiriesByPod.get(address)
      const expiries = known ?? new SlotMap<string, number>({ hashOf: hashOfId, maxEntries: maxTurnsPerPod })
      if (known === undefined) expiriesByPod.set(address, expiries)
      forgetExpired(expiries)
      expiries.set(turnId, options.nowMs() + options.turnLeaseMs)
    },
    ended: (address, turnId) => {
      const expiries = expiriesByPod.get(address)
      if (expiries === undefined) return
      expiries.delete(turnId)
      forgetIdlePod(address, expiries)
    },
    count: (address) => {
      const expiries = expiriesByPod.get(address)
      if (expiries === undefined) return 0
      forgetExpired(expiries)
      return expiries.size
    },
  }
}
