import { filterHeaders, type GatewayRequest, requestKeyHeader } from '../../context/context-cache-manager.ts'
import type { ExtProcEvent } from '../codec.ts'
import { destinationKey } from '../replies.ts'

type RequestHeaders = Extract<ExtProcEvent, { kind: 'request_headers' }>

/** Headers that only the gateway or Envoy may set: a client's own do not count, and no pod receives them. */
export const internalHeaders: readonly string[] = [
  destinationKey,
  `${destinationKey}-subset`,
  `${destinationKey}-served`,
  'target-pod',
  'x-context-cache',
  'x-session-expires-at',
  'x-context-pool',
  requestKeyHeader,
  ...Object.values(filterHeaders),
]

/** Headers whose values come from the gateway itself, or from a filter that an endpoint picker does without. */
const ownHeaders: ReadonlySet<string> = new Set([requestKeyHeader, ...Object.values(filterHeaders)])

/** Internal headers that the request has. */
export const headersToRemove = ({ headers }: Pick<RequestHeaders, 'headers'>): readonly string[] =>
  internalHeaders.filter((name) => headers(name).length > 0)

/** The HTTP request behind the headers, for which a pod is to be picked. */
export const toPickRequest = ({ headers, endOfStream, metadata }: RequestHeaders): GatewayRequest => ({
  method: headers(':method')[0] ?? '',
  path: headers(':path')[0] ?? '',
  header: (name) => (ownHeaders.has(name) ? [] : headers(name)),
  endOfStream,
  bodyReadable: true,
  pick: { subset: metadata?.('envoy.lb.subset_hint', `${destinationKey}-subset`) },
})
