import type { GatewayRequest } from '../context/context-service.ts'
import { canReadBody } from './body-modes.ts'
import type { ExtProcEvent } from './messages.ts'

/** The HTTP request behind the headers that Envoy told of. */
export const toGatewayRequest = ({
  headers,
  endOfStream,
  bodyMode,
}: Extract<ExtProcEvent, { kind: 'request-headers' }>): GatewayRequest => ({
  method: headers(':method')[0] ?? '',
  path: headers(':path')[0] ?? '',
  header: headers,
  endOfStream,
  bodyReadable: canReadBody(bodyMode),
})
