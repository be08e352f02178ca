import type { TenantKey } from '../sessions/session-record.ts'
import type { Body } from './conversation-body.ts'
import type { ForgottenChain } from './conversations.ts'

/** A request that no engine answers. */
export interface HistoryRequest {
  readonly method: string
  /** Segments of the path behind `/v1/`: `responses`, `resp_1`, `input_items`. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
  readonly tenant: TenantKey
  /** Empty where there is none. */
  readonly body: Body
  /** Of a conversation that is created or changed. */
  readonly ttlSeconds: number
  /** Deletes what is kept of a chain elsewhere. */
  readonly forget: (chain: ForgottenChain) => Promise<void>
}

/** Status 200. `text`: as it was stored, or a stream of events. */
export type HistoryAnswer =
  | { readonly kind: 'json'; readonly body: object }
  | { readonly kind: 'text'; readonly contentType: string; readonly text: string }
