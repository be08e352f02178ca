import type { GatewayRequest } from './context-cache-manager.ts'
import { containsSessionId } from './session-id.ts'

/** By what a request is known in the logs of others. */
export interface RequestTrace {
  /** Trace id of `traceparent` (W3C Trace Context): 32 hexadecimal digits. */
  readonly traceId?: string | undefined
  /** `x-request-id`: at most 64 letters, digits, `-`, `_` and `.`. */
  readonly requestId?: string | undefined
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/
const requestIdForm = /^[\w.-]{1,64}$/

/** A value that is sent twice, or is of another form, or is a session id, counts as none: it goes to the log. */
export const traceOf = (request: Pick<GatewayRequest, 'header'>): RequestTrace => {
  const only = (name: string): string => {
    const [value = '', ...others] = request.header(name)
    return others.length === 0 && !containsSessionId([value]) ? value : ''
  }
  const requestId = only('x-request-id')
  return {
    traceId: traceparentForm.exec(only('traceparent'))?.[1],
    requestId: requestIdForm.test(requestId) ? requestId : undefined,
  }
}
