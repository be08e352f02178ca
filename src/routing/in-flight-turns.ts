/** Above this, the oldest turn is dropped. */
const maxTurns = 65_536
/** A younger turn may not have reached the engine: its KV is being loaded, or its body is on the way. */
const reachedAfterMs = 30_000

/** Counts turns on one pod, until they end, their lease ends, or the engine runs fewer requests than are counted. */
export class InFlightTurns {
  readonly #options: { readonly turnLeaseMs: number; readonly nowMs: () => number }
  /** By turn id. All leases are equally long, so the order of starts is the order of expiry. */
  readonly #expiries = new Map<string, number>()

  /** `nowMs` is a monotonic clock. */
  constructor(options: { readonly turnLeaseMs: number; readonly nowMs: () => number }) {
    this.#options = options
  }

  /** Counts a turn once; a second call renews its lease. */
  started(turnId: string): void {
    this.#expiries.delete(turnId)
    this.#expiries.set(turnId, this.#options.nowMs() + this.#options.turnLeaseMs)
    this.#dropExpired()
  }

  ended(turnId: string): void {
    this.#expiries.delete(turnId)
  }

  /** The engine runs `requests`, those of others included: of the turns beyond that, the oldest have ended. */
  reported(requests: number): void {
    const { turnLeaseMs, nowMs } = this.#options
    const youngestExpiryMs = nowMs() + turnLeaseMs - reachedAfterMs
    for (const [turnId, expiresAtMs] of this.#expiries) {
      if (this.#expiries.size <= requests || expiresAtMs > youngestExpiryMs) break
      this.#expiries.delete(turnId)
    }
  }

  count(): number {
    this.#dropExpired()
    return this.#expiries.size
  }

  #dropExpired(): void {
    const nowMs = this.#options.nowMs()
    for (const [turnId, expiresAtMs] of this.#expiries) {
      if (expiresAtMs > nowMs && this.#expiries.size <= maxTurns) return
      this.#expiries.delete(turnId)
    }
  }
}
