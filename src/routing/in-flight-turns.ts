import type { PodAddress } from './pod.ts'

/** Turns of one pod; above this, the oldest is dropped. */
const maxTurnsPerPod = 65_536
/** A younger turn may not have reached the engine: its KV is being loaded, or its body is on the way. */
const reachedAfterMs = 30_000

/**
 * Counts the turns that run on each pod. The end of a turn may be reported to another gateway: a turn is dropped when
 * the engine runs fewer requests than are counted, or after its lease.
 */
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

  /** The engine runs `requests`, those of others included: of the turns beyond that, the oldest have ended. */
  reported(address: PodAddress, requests: number): void {
    const expiries = this.#expiriesByPod.get(address)
    if (expiries === undefined) return
    const { turnLeaseMs, nowMs } = this.#options
    const youngestExpiryMs = nowMs() + turnLeaseMs - reachedAfterMs
    for (const [turnId, expiresAtMs] of expiries) {
      if (expiries.size <= requests || expiresAtMs > youngestExpiryMs) break
      expiries.delete(turnId)
    }
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
