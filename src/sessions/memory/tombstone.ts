import type { TenantKey } from '../session-record.ts'
import type { TurnLease } from './turn-leases.ts'

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
