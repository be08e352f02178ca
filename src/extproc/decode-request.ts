import { answerModeOf, bodyModes } from './body-modes.ts'
import { createHeaderLookup, type WireHeader } from './header-lookup.ts'
import type { AnswerMode, BodyMode, ExtProcEvent } from './messages.ts'

interface WireHeaders {
  readonly headers?: { readonly headers?: readonly WireHeader[] }
  readonly end_of_stream?: boolean
}

interface WireBody {
  readonly body?: Buffer
  readonly end_of_stream?: boolean
}

/** A decoded ProcessingRequest; what was not sent is missing. */
interface WireRequest {
  readonly request?: string
  readonly request_headers?: WireHeaders
  readonly request_body?: WireBody
  readonly response_headers?: WireHeaders
  readonly response_body?: WireBody
  readonly protocol_config?: { readonly request_body_mode?: number; readonly response_body_mode?: number }
}

const emptyBody = Buffer.alloc(0)

/** A decoded ProcessingRequest as an event. */
export const decodeRequest = (message: unknown): ExtProcEvent => {
  const wire = message as WireRequest
  switch (wire.request) {
    case 'request_headers':
      return {
        kind: 'request-headers',
        headers: createHeaderLookup(wire.request_headers?.headers?.headers ?? []),
        endOfStream: wire.request_headers?.end_of_stream ?? false,
        bodyMode: toBodyMode(wire.protocol_config),
        answerMode: toAnswerMode(wire.protocol_config),
      }
    case 'request_body':
      return {
        kind: 'request-body',
        body: wire.request_body?.body ?? emptyBody,
        endOfStream: wire.request_body?.end_of_stream ?? false,
      }
    case 'request_trailers':
      return { kind: 'request-trailers' }
    case 'response_headers':
      return {
        kind: 'response-headers',
        headers: createHeaderLookup(wire.response_headers?.headers?.headers ?? []),
        endOfStream: wire.response_headers?.end_of_stream ?? false,
      }
    case 'response_body':
      return {
        kind: 'response-body',
        body: wire.response_body?.body ?? emptyBody,
        endOfStream: wire.response_body?.end_of_stream ?? false,
      }
    case 'response_trailers':
      return { kind: 'response-trailers' }
    default:
      return { kind: 'unknown' }
  }
}

const toBodyMode = (config: WireRequest['protocol_config']): BodyMode =>
  config === undefined ? 'unknown' : (bodyModes[config.request_body_mode ?? 0] ?? 'unknown')

const toAnswerMode = (config: WireRequest['protocol_config']): AnswerMode =>
  config === undefined ? 'unknown' : answerModeOf(config.response_body_mode ?? 0)
