import type { SessionKey, SessionRecord, StoredKv, TenantKey, TokenTotals } from '../session-record.ts'
import type { EvictionPlace } from './eviction-order.ts'
import { sessionBytes } from './session-bytes.ts'
import type { TurnLease } from './turn-leases.ts'

/** A session that lives. */
export interface LiveSession {
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly sealedId: string
  readonly model: string
  readonly createdAtMs: number
  /** Its place in the tenant's list. */
  readonly sequence: number
  state: 'creating' | 'active'
  expiresAtMs: number
  ttlSeconds: number
  turns: number
  tokens: TokenTotals
  pod: string | undefined
  kv: StoredKv | undefined
  kvNote: string | undefined
  /** The retry key that names it, while it is being created. */
  retryDigest: string | undefined
  /** About what it takes of this process's memory. */
  bytes: number
  /** Where it stands among all sessions, and its stored KV among all that is stored, when room is needed. */
  place: EvictionPlace<SessionKey> | undefined
  kvPlace: EvictionPlace<SessionKey> | undefined
}

/** A session that a table does not know yet. */
export type NewLiveSession = Omit<LiveSession, 'sequence' | 'bytes' | 'place' | 'kvPlace'>

/**
 * A session with its place. Named one by one: V8 gives each object that a spread makes of so many members a hidden class of its own, and whatever
 * reads a session then has to find its members anew.
 */
export const toLive = (session: NewLiveSession, sequence: number): LiveSession => ({
  key: session.key,
  tenant: session.tenant,
  sealedId: session.sealedId,
  model: session.model,
  createdAtMs: session.createdAtMs,
  sequence,
  state: session.state,
  expiresAtMs: session.expiresAtMs,
  ttlSeconds: session.ttlSeconds,
  turns: session.turns,
  tokens: session.tokens,
  pod: session.pod,
  kv: session.kv,
  kvNote: session.kvNote,
  retryDigest: session.retryDigest,
  bytes: sessionBytes(session),
  place: undefined,
  kvPlace: undefined,
})

/** What is remembered of a session that has ended. */
export type Tombstone = {
  readonly tenant: TenantKey
  readonly sequence: number
  forgetAtMs: number
} & (
  | { readonly kind: 'deleted' }
  | {
      readonly kind: 'expired'
      readonly sealedId: string
      readonly model: string
      readonly ttlSeconds: number
      /** Its time was over, or it had to make room. */
      readonly cause: 'time' | 'eviction'
      /** Of turns that may start it anew. */
      leases: readonly TurnLease[]
    }
)

export type ExpiredTombstone = Extract<Tombstone, { kind: 'expired' }>

export const toRecord = (session: LiveSession): SessionRecord => ({
  key: session.key,
  tenant: session.tenant,
  sealedId: session.sealedId,
  model: session.model,
  createdAtMs: session.createdAtMs,
  expiresAtMs: session.expiresAtMs,
  ttlSeconds: session.ttlSeconds,
  turns: session.turns,
  tokens: session.tokens,
  pod: session.pod,
  kv: session.kv,
  kvNote: session.kvNote,
})
