/** Whether the gateway can take turns now, and what else the page shows. */
export interface Readiness {
  readonly ready: boolean
  readonly [detail: string]: unknown
}

/** The answer of an admin page. */
export interface AdminAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
  /** Beside those of every page. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What the admin pages show. */
export interface AdminSources {
  /** Prometheus text. */
  readonly metrics: { readonly contentType: string; render(): Promise<string> }
  /** Whether turns may be sent here. */
  readonly readiness: () => Readiness
  /** The configuration without its secrets. */
  readonly redactedConfig: () => unknown
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
    ['/config', async () => json(sources.redactedConfig())],
  ])

const indexOf = (version: string): string =>
  [
    `Context Cache Gateway ${version}`,
    '',
    '/healthz  200 while the process is alive',
    '/readyz   200 when it can take turns, else 503; what is missing, as JSON',
    '/metrics  Prometheus metrics',
    '/config   the effective configuration, without secrets',
    '/console/ the same and more for people, as a page: docs/console.md',
    '/api      sessions, pods and what the cache saves, as JSON: docs/console.md',
    '',
  ].join('\n')

const readinessAnswer = (readiness: Readiness): AdminAnswer => ({
  ...json(readiness),
  status: readiness.ready ? 200 : 503,
})

/** A JSON answer. */
export const json = (value: unknown): AdminAnswer => ({
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
