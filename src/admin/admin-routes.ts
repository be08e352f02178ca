/** Whether the gateway can take turns now, and what it does without. */
export interface Readiness {
  readonly ready: boolean
  /** What keeps it from taking turns, in a few words each. */
  readonly reasons: readonly string[]
  /** Something is missing that turns can do without, or a part of the pods. */
  readonly degraded: boolean
  readonly store: { readonly kind: string; readonly available: boolean }
  readonly pools: readonly {
    readonly name: string
    readonly connector: string
    readonly pods: readonly { readonly address: string; readonly ready: boolean; readonly inFlight: number }[]
  }[]
  /** Findings and outages that do not stop turns. */
  readonly warnings: readonly {
    readonly kind: string
    readonly subject: string
    readonly text: string
    readonly sinceSeconds: number
  }[]
}

/** The answer of an admin page. */
export interface AdminAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** What the admin pages show. */
export interface AdminSources {
  /** Prometheus text. */
  readonly metrics: { readonly contentType: string; render(): Promise<string> }
  /** Whether turns may be sent here. */
  readonly readiness: () => Readiness
  /** The configuration without its secrets. */
  readonly redactedConfig: unknown
  readonly version: string
}

/** The pages by their paths. */
export const createAdminPages = (sources: AdminSources): ReadonlyMap<string, () => Promise<AdminAnswer>> =>
  new Map([
    ['/', async () => text(indexOf(sources.version))],
    ['/healthz', async () => text('ok\n')],
    ['/readyz', async () => readinessAnswer(sources.readiness())],
    [
      '/metrics',
      async () => ({ status: 200, contentType: sources.metrics.contentType, body: await sources.metrics.render() }),
    ],
    ['/config', async () => json(sources.redactedConfig)],
  ])

const indexOf = (version: string): string =>
  [
    `Context Cache Gateway ${version}`,
    '',
    '/healthz  200 while the process is alive',
    '/readyz   200 when it can take turns, else 503; what is missing, as JSON',
    '/metrics  Prometheus metrics',
    '/config   the effective configuration, without secrets',
    '',
  ].join('\n')

const readinessAnswer = (readiness: Readiness): AdminAnswer => ({
  ...json(readiness),
  status: readiness.ready ? 200 : 503,
})

const json = (value: unknown): AdminAnswer => ({
  status: 200,
  contentType: 'application/json; charset=utf-8',
  body: `${JSON.stringify(value, null, 2)}\n`,
})

/** A plain text answer. */
export const text = (body: string, status = 200): AdminAnswer => ({
  status,
  contentType: 'text/plain; charset=utf-8',
  body,
})
