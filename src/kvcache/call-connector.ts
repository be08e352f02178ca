import { withinLimit } from './deadline.ts'
import type { KvConnector } from './kv-connector.ts'

/** Never fires: for calls of an instant connector. */
export const unlimited: AbortSignal = new AbortController().signal

/** Makes a call of a connector that gets a signal which fires after `limitMs`. An instant connector needs none. */
export const callConnector = <T>(
  connector: KvConnector,
  limitMs: number,
  call: (connector: KvConnector, signal: AbortSignal) => Promise<T>,
): Promise<T> =>
  connector.isInstant === true ? call(connector, unlimited) : withinLimit(limitMs, (signal) => call(connector, signal))
