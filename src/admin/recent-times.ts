/** Times of the last minutes, for percentiles. */
export class RecentTimes {
  readonly #windowMs: number
  readonly #nowMs: () => number
  readonly #times: { readonly atMs: number; readonly ms: number }[] = []

  constructor(options: { readonly windowMs: number; readonly nowMs: () => number }) {
    this.#windowMs = options.windowMs
    this.#nowMs = options.nowMs
  }

  add(ms: number): void {
    if (this.#times.length === maxTimes) this.#times.shift()
    this.#times.push({ atMs: this.#nowMs(), ms })
  }

  /** Null: there was none in the window. */
  percentiles(): { readonly count: number; readonly p50: number; readonly p90: number } | null {
    const fromMs = this.#nowMs() - this.#windowMs
    const sorted = this.#times.filter(({ atMs }) => atMs >= fromMs).map(({ ms }) => ms)
    sorted.sort((a, b) => a - b)
    const at = (share: number): number => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)
    return sorted.length === 0 ? null : { count: sorted.length, p50: at(0.5), p90: at(0.9) }
  }
}

/** The latest of them. */
const maxTimes = 1_000
