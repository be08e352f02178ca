/** Kind of a request: what it needs to be answered. */
export type RequestKind = 'turn' | 'create' | 'manage' | 'plain' | 'refused'

/** A fault, from its beginning until the part works again. */
export interface FaultWindow {
  readonly name: string
  /** Requests that cannot be answered meanwhile. */
  readonly excuses: readonly RequestKind[]
  readonly fromMs: number
  untilMs: number
}

export interface Failure {
  readonly kind: RequestKind
  readonly what: string
  readonly fromMs: number
  readonly untilMs: number
}

/** What came of all requests of a soak. */
export class Ledger {
  readonly counts = new Map<RequestKind, number>()
  readonly failures: Failure[] = []
  readonly faults: FaultWindow[] = []
  /** Turns by what `x-context-cache` began with. */
  readonly cache = new Map<string, number>()

  /** Records what a request came to. `what`: how it failed. A part that is back may take a moment to be used. */
  record(kind: RequestKind, fromMs: number, what: string | undefined): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    if (what === undefined) return
    this.failures.push({ kind, what, fromMs, untilMs: performance.now() })
  }

  sawCache(line: string | null): void {
    const [found = 'without a session'] = line?.split(';') ?? []
    this.cache.set(found, (this.cache.get(found) ?? 0) + 1)
  }

  /** Those that failed though nothing was away that they need. */
  get unexcused(): readonly Failure[] {
    return this.failures.filter(
      ({ kind, fromMs, untilMs }) =>
        !this.faults.some((each) => each.excuses.includes(kind) && each.fromMs <= untilMs && fromMs <= each.untilMs),
    )
  }
}
