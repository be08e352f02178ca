import type { GatewayRequest } from './context-cache-manager.ts'
import { containsSessionId } from './session-id.ts'

/** By what a request is known in the logs of others. */
export interface RequestTrace {
  /** Trace id of `traceparent` (W3C Trace Context): 32 hexadecimal digits. */
  readonly traceId?: string | undefined
  /** `x-request-id`: at most 64 letters, digits, `-`, `_` and `.`. */
  readonly requestId?: string | undefined
}

/** The caller's span. */
export interface ParentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
const requestIdForm = /^[\w.-]{1,64}$/

type Headers = Pick<GatewayRequest, 'header'>

/** Empty: it is missing, is sent twice, or has a session id, since it goes to the log. */
const only = (request: Headers, name: string): string => {
  const [value = '', ...others] = request.header(name)
  return others.length === 0 && !containsSessionId([value]) ? value : ''
}

/** A value of another form counts as none. */
export const traceOf = (request: Headers): RequestTrace => {
  const requestId = only(request, 'x-request-id')
  return {
    traceId: traceparentForm.exec(only(request, 'traceparent'))?.[1],
    requestId: requestIdForm.test(requestId) ? requestId : undefined,
  }
}

/** The span of `traceparent`. Undefined: there is none. */
export const parentSpanOf = (request: Headers): ParentSpan | undefined => {
  const [, traceId, spanId, flags] = traceparentForm.exec(only(request, 'traceparent')) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
