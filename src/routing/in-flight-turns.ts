import { ExpiringMap } from '../async/expiring-map.ts'

const maxTurns = 65_536
/** A younger turn may not have reached the engine: its KV is being loaded, or its body is on the way. */
const reachedAfterMs = 30_000

/** Counts turns on one pod, until they end, their lease ends, or the engine runs fewer requests than are counted. */
export class InFlightTurns {
  readonly #turns: ExpiringMap<true>

  /** `nowMs` is a monotonic clock. */
  constructor({ turnLeaseMs, nowMs }: { readonly turnLeaseMs: number; readonly nowMs: () => number }) {
    this.#turns = new ExpiringMap({ lifetimeMs: turnLeaseMs, maxEntries: maxTurns, nowMs })
  }

  /** Counts a turn once; a second call renews its lease. */
  started(turnId: string): void {
    this.#turns.set(turnId, true)
  }

  ended(turnId: string): void {
    this.#turns.delete(turnId)
  }

  /** The engine runs `requests`, those of others included: of the turns beyond that, the oldest have ended. */
  reported(requests: number): void {
    this.#turns.dropOldest({ keep: requests, leastAgeMs: reachedAfterMs })
  }

  count(): number {
    return this.#turns.count()
  }
}
