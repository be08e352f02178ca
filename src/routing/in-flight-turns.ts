import type { PodAddress } from './pod.ts'

/** Turns of one pod; above this, the oldest is dropped. */
const maxTurnsPerPod = 65_536

/** Counts the turns that run on each pod. A turn whose end is not reported is dropped after its lease. */
export class InFlightTurns {
  readonly #options: { readonly turnLeaseMs: number; readonly nowMs: () => number }
  /** Expiry by turn id. All leases are equally long, so the order of starts is the order of expiry. */
  readonly #expiriesByPod = new Map<PodAddress, Map<string, number>>()

  /** `nowMs` is a monotonic clock. */
  constructor(options: { readonly turnLeaseMs: number; readonly nowMs: () => number }) {
    this.#options = options
  }

  /** Counts a turn once; a second call renews its lease. */
  started(address: PodAddress, turnId: string): void {
    const expiries = this.#expiriesByPod.get(address) ?? new Map<string, number>()
    this.#expiriesByPod.set(address, expiries)
    expiries.delete(turnId)
    expiries.set(turnId, this.#options.nowMs() + this.#options.turnLeaseMs)
    this.#dropExpired(expiries)
  }

  ended(address: PodAddress, turnId: string): void {
    const expiries = this.#expiriesByPod.get(address)
    expiries?.delete(turnId)
    if (expiries?.size === 0) this.#expiriesByPod.delete(address)
  }

  count(address: PodAddress): number {
    const expiries = this.#expiriesByPod.get(address)
    if (expiries === undefined) return 0
    this.#dropExpired(expiries)
    return expiries.size
  }

  #dropExpired(expiries: Map<string, number>): void {
    const nowMs = this.#options.nowMs()
    for (const [turnId, expiresAtMs] of expiries) {
      if (expiresAtMs > nowMs && expiries.size <= maxTurnsPerPod) return
      expiries.delete(turnId)
    }
  }
}
