export interface ExpiringMapOptions {
  /** Milliseconds from the last `set` of an entry to its end. */
  readonly lifetimeMs: number
  /** Above this, the oldest entry is dropped. */
  readonly maxEntries: number
  /** A monotonic clock. Default: `performance.now`. */
  readonly nowMs?: () => number
}

/**
 * A map of bounded size and time. All lifetimes are equally long, so entries expire in the order in which they were set,
 * and expired ones are dropped at the next call, without a timer. Not an LRUCache: there, to delete the only entry takes
 * as long as to clear all places.
 */
export class ExpiringMap<Value> {
  readonly #options: Required<ExpiringMapOptions>
  readonly #entries = new Map<string, { readonly value: Value; readonly setMs: number }>()

  constructor({ nowMs = () => performance.now(), ...limits }: ExpiringMapOptions) {
    this.#options = { nowMs, ...limits }
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, setMs: this.#options.nowMs() })
    this.dropOldest({ keep: this.#options.maxEntries, leastAgeMs: 0 })
  }

  /** Undefined: not set, deleted, or expired. */
  get(key: string): Value | undefined {
    this.#dropExpired()
    return this.#entries.get(key)?.value
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  count(): number {
    this.#dropExpired()
    return this.#entries.size
  }

  /** Drops the oldest entries until `keep` are left, but none that is younger than `leastAgeMs`. */
  dropOldest({ keep, leastAgeMs }: { readonly keep: number; readonly leastAgeMs: number }): void {
    this.#dropExpired()
    this.#drop(keep, leastAgeMs)
  }

  #dropExpired(): void {
    this.#drop(0, this.#options.lifetimeMs)
  }

  #drop(keep: number, leastAgeMs: number): void {
    const setBeforeMs = this.#options.nowMs() - leastAgeMs
    for (const [key, { setMs }] of this.#entries) {
      if (this.#entries.size <= keep || setMs > setBeforeMs) return
      this.#entries.delete(key)
    }
  }
}
