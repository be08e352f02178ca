import type { Admission } from '../admission/admission.ts'
import type { SessionKey, StoredKv, TenantKey } from '../sessions/session-record.ts'
import type { SessionStore, TurnExpiry } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'
import type { HitCheck } from './hit-check.ts'
import type { Pools } from './pools.ts'
import type { Route } from './route-turn.ts'

/** What the start of a turn uses. */
export interface TurnParts {
  readonly store: SessionStore
  readonly pools: Pools
  readonly events: ContextEvents
  readonly admission: Admission
  readonly hitCheck: HitCheck
}

/** A turn of a session, routed and with a lease in the session store. */
export interface SessionTurn {
  readonly turnId: string
  readonly route: Route
  readonly tenant: TenantKey
  readonly session: {
    readonly key: SessionKey
    readonly model: string
    readonly kv?: StoredKv | undefined
    readonly kvStatus?: string | undefined
    readonly createdAtMs?: number | undefined
  }
  readonly expiry: TurnExpiry
  /** An expired session starts again: KV of its earlier life is not used. Default: false. */
  readonly restarted?: boolean
}
