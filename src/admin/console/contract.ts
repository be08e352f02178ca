/** Answers of the operators' API (docs/console.md). Times are ISO 8601. */
export interface Overview {
  readonly version: string
  readonly startedAt: string
  readonly now: string
  readonly store: { readonly kind: string; readonly available: boolean }
  readonly warnings: readonly Warning[]
  readonly current: {
    readonly turnsInFlight: number
    readonly waiting: number
    /** Null, as the next ones, while the store does not answer. */
    readonly sessions: number | null
    readonly storedBytes: number | null
    readonly removalsPending: number | null
  }
  readonly totals: Totals
  readonly ttftMs: { readonly hit: Quantiles | null; readonly miss: Quantiles | null; readonly none: Quantiles | null }
}

/** Something that an operator should mend. */
export interface Warning {
  readonly kind: string
  readonly subject: string
  readonly text: string
  readonly sinceSeconds: number
}

/** Since the gateway started. */
interface Totals {
  readonly turns: { readonly completed: number; readonly failed: number }
  readonly lookups: Lookups
  readonly namedBy: Readonly<Record<string, number>>
  readonly promptTokens: { readonly cached: number; readonly computed: number }
  readonly prefillSeconds: { readonly saved: number; readonly computed: number }
  readonly hitsNotReused: number
  readonly degraded: number
}

/** Turns of sessions, by where their KV was. */
export interface Lookups {
  readonly gpu: number
  /** In the memory of the pod's host. */
  readonly cpu: number
  readonly store: number
  readonly miss: number
}

interface Quantiles {
  readonly count: number
  readonly p50: number
  readonly p90: number
}

/** What happened in five seconds. */
export interface Sample extends Lookups {
  readonly at: string
  readonly turns: number
  readonly savedSeconds: number
  readonly computedSeconds: number
}

/** A pool of pods. */
export interface Pool {
  readonly name: string
  readonly connector: string
  readonly pods: readonly Pod[]
}

/** A pod, as this gateway sees it. */
export interface Pod {
  readonly address: string
  readonly ready: boolean
  readonly turnsInFlight: number
  /** Sessions whose KV it holds. */
  readonly sessions: number
  readonly models: readonly string[]
  readonly loadsUnderWay: number
  readonly turns: number
  readonly hits: number
  readonly loadMsP50: number | null
}

/** A session without its id. */
export interface Session {
  readonly digest: string
  readonly tenant: string
  readonly model: string
  /** By what its last turn named it; null: this gateway saw none. */
  readonly namedBy: string | null
  readonly createdAt: string
  readonly expiresAt: string
  readonly ttlSeconds: number
  readonly turns: number
  readonly tokens: { readonly prompt: number; readonly output: number; readonly cached: number }
  /** Prompts that run under one name. */
  readonly prompts: number
  readonly pod: string | null
  readonly kv: { readonly tokens: number; readonly bytes: number; readonly turn: number } | null
  readonly kvStatus: string | null
}

/** One page of the list of sessions. */
export interface SessionPage {
  readonly data: readonly Session[]
  readonly next: string | null
}

/** What the live sessions of a tenant use. */
export interface TenantUse {
  readonly tenant: string
  readonly sessions: number
  /** Of these, as many as clients' own names chose. */
  readonly namedSessions: number
  readonly storedBytes: number
  readonly turns: number
  readonly tokens: Session['tokens']
  /** False: there are more sessions than were looked at. */
  readonly complete: boolean
}

/** What one call of an erasure ended. */
export interface TenantErasure {
  readonly sessions: number
  readonly cachedAnswers: number
  /** False: sessions are left, for another call. */
  readonly complete: boolean
}

/** Limits of each tenant; without a limit a member is missing. */
export interface TenantLimits {
  readonly maxSessions?: number
  readonly maxStoredBytes?: number
  readonly maxTurns?: number
}

/** A session and what this gateway saw of it, oldest first. */
export interface SessionLife extends Session {
  readonly timeline: readonly SessionEvent[]
}

/** One event of a session. */
export interface SessionEvent {
  readonly at: string
  readonly kind: 'created' | 'turn' | 'deleted' | 'removed'
  readonly pod?: string
  readonly outcome?: string
  readonly cacheStatus?: string
  readonly tier?: 'gpu' | 'cpu' | 'store'
  readonly tokens?: number
  readonly loadMs?: number
  readonly ttftMs?: number
  readonly promptTokens?: number
  readonly cachedTokens?: number
  readonly outputTokens?: number
  readonly waitedMs?: number
  /** `stored`, `unchanged`, or why nothing was stored. */
  readonly offload?: string
  readonly offloadMs?: number
}
