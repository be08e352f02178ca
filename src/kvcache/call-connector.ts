import type { StoredKv } from '../sessions/session-record.ts'
import { withinLimit } from './deadline.ts'
import type { KvConnector, KvTurn } from './kv-connector.ts'

/** Never fires: for instant calls. */
export const unlimited: AbortSignal = new AbortController().signal

/** What a call is about. */
export interface CallSubject {
  readonly turn: KvTurn
  /** What the session has stored; undefined: nothing. */
  readonly kv: StoredKv | undefined
  readonly limitMs: number
}

/** Makes a call of a connector that gets a signal which fires after the limit. An instant call needs none. */
export const callConnector = <T>(
  connector: KvConnector,
  { turn, kv, limitMs }: CallSubject,
  call: (connector: KvConnector, signal: AbortSignal) => Promise<T>,
): Promise<T> =>
  connector.isInstant?.(turn, kv) === true
    ? call(connector, unlimited)
    : withinLimit(limitMs, (signal) => call(connector, signal))
