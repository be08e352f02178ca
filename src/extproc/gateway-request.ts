import type { GatewayRequest } from '../context/context-cache-manager.ts'
import { canReadBody } from './body-modes.ts'
import type { ExtProcEvent } from './messages.ts'

/** What Envoy tells of a request ahead of its body. */
export type RequestHead = Pick<
  Extract<ExtProcEvent, { kind: 'request-headers' }>,
  'headers' | 'endOfStream' | 'bodyMode'
>

/** The HTTP request behind the headers that Envoy told of. */
export const toGatewayRequest = ({ headers, endOfStream, bodyMode }: RequestHead): GatewayRequest => ({
  method: headers(':method')[0] ?? '',
  path: headers(':path')[0] ?? '',
  header: headers,
  endOfStream,
  bodyReadable: canReadBody(bodyMode),
})
