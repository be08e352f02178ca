import type { Decision } from '../context/context-cache-manager.ts'
import { loadProtoMethod } from '../protobuf/load-proto-method.ts'
import { bytesBesideBody } from './bytes-beside-body.ts'
import { bodyMutation, decisionMessage, dynamicMetadata, headerMutation } from './replies.ts'

/** Full name of the service, which is also its name in health checks. */
export const externalProcessorService = 'envoy.service.ext_proc.v3.ExternalProcessor'

/** A part of an HTTP exchange that Envoy sends, by the name of its field in ProcessingRequest. */
export type Phase =
  | 'request_headers'
  | 'request_body'
  | 'request_trailers'
  | 'response_headers'
  | 'response_body'
  | 'response_trailers'

/** Envoy's BodySendMode, in the order of its numbers. */
const bodyModes = ['none', 'streamed', 'buffered', 'buffered_partial', 'full_duplex_streamed', 'grpc'] as const

/** How Envoy sends the request body on a stream; `unknown`: it does not say, or in a way of the future. */
export type BodyMode = (typeof bodyModes)[number] | 'unknown'

/** All values of a header in their order, bytes as latin1; empty when there are none. `name` in lower case. */
export type HeaderLookup = (name: string) => readonly string[]

/** The texts of a value in Envoy's dynamic metadata: a list, or a text with commas. Undefined: Envoy sends none. */
export type MetadataLookup = (namespace: string, key: string) => readonly string[] | undefined

/** One message of Envoy. */
export type ExtProcEvent =
  | {
      readonly kind: 'request_headers'
      readonly headers: HeaderLookup
      /** No body follows. */
      readonly endOfStream: boolean
      readonly bodyMode: BodyMode
      /** Whether Envoy sends the response on this stream too. */
      readonly responseBodySent: boolean
      readonly metadata?: MetadataLookup
    }
  | {
      readonly kind: 'response_headers'
      readonly headers: HeaderLookup
      readonly endOfStream: boolean
      readonly metadata?: MetadataLookup
    }
  /** A whole body has no `endOfStream` when trailers follow. `body` is a view of its message, and retains all of it. */
  | { readonly kind: 'request_body'; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: 'response_body'; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: 'request_trailers' }
  | { readonly kind: 'response_trailers' }
  /** A message of a kind that this gateway does not know. */
  | { readonly kind: 'unknown' }

/** What the gateway replies: one per event, plus at most one `extend` before it. */
export type Reply =
  /**
   * Continue, with these changes of headers; `destinations` names the pods of a request in Envoy's metadata. `body` takes
   * the place of a piece of the response.
   */
  | {
      readonly kind: 'continue'
      readonly phase: Phase
      readonly body?: Buffer
      readonly setHeaders?: Readonly<Record<string, string>>
      readonly removeHeaders?: readonly string[]
      readonly destinations?: string | undefined
    }
  /** Apply a decision on the request. `isLast`: Envoy may keep the rest of request and response to itself. */
  | {
      readonly kind: 'decision'
      readonly phase: 'request_headers' | 'request_body' | 'request_trailers'
      readonly decision: Decision
      readonly isLast?: boolean
      /** Of the request: an error takes the form of its API. Default: OpenAI's. */
      readonly path?: string | undefined
    }
  /** The next piece of a body. Only with FULL_DUPLEX_STREAMED, where pieces go out as they come in, or otherwise. */
  | {
      readonly kind: 'body'
      readonly phase: 'request_body' | 'response_body'
      readonly body: Buffer
      readonly endOfStream: boolean
    }
  /** The reply follows later; wait this much longer. */
  | { readonly kind: 'extend'; readonly milliseconds: number }

/** Envoy's bytes to events, replies to Envoy's bytes, by protos/external-processor.proto. */
export interface ExtProcCodec {
  /** Path of the gRPC method. */
  readonly path: string
  /** @throws on bytes that are no message */
  decode(bytes: Buffer): ExtProcEvent
  /** @throws on an answer whose body is not JSON */
  encode(reply: Reply): Buffer
}

/** What a message may have beside a body: headers, framing. Envoy's own limit for headers is 60 KiB. */
export const maxBesideBodyBytes = 65_536

export const createExtProcCodec = (): ExtProcCodec => {
  const method = loadProtoMethod('external-processor.proto', externalProcessorService, 'Process', {
    maxBytes: maxBesideBodyBytes,
    bytesOf: bytesBesideBody,
  })
  return {
    path: method.path,
    decode: (bytes) => toEvent(method.decodeRequest(bytes) as WireRequest),
    encode: (reply) => method.encodeResponse(toMessage(reply)),
  }
}

interface WireHeaders {
  readonly headers?: { readonly headers?: readonly { readonly key?: string; readonly raw_value?: Buffer }[] }
  readonly end_of_stream?: boolean
}

interface WireBody {
  readonly body?: Buffer
  readonly end_of_stream?: boolean
}

/** A google.protobuf.Struct, as far as it holds texts and lists of texts. */
interface WireStruct {
  readonly fields?: Readonly<Record<string, WireValue>>
}

interface WireValue {
  readonly stringValue?: string
  readonly listValue?: { readonly values?: readonly WireValue[] }
}

/** A decoded ProcessingRequest. `request` names the field that is set. */
interface WireRequest {
  readonly request?: string
  readonly request_headers?: WireHeaders
  readonly request_body?: WireBody
  readonly response_headers?: WireHeaders
  readonly response_body?: WireBody
  readonly metadata_context?: { readonly filter_metadata?: Readonly<Record<string, WireStruct>> }
  readonly protocol_config?: { readonly request_body_mode?: number; readonly response_body_mode?: number }
}

const noBytes = Buffer.alloc(0)

const toEvent = (wire: WireRequest): ExtProcEvent => {
  switch (wire.request) {
    case 'request_headers':
      return {
        kind: 'request_headers',
        ...headersOf(wire.request_headers),
        ...modesOf(wire.protocol_config),
        metadata: metadataOf(wire),
      }
    case 'response_headers':
      return { kind: 'response_headers', ...headersOf(wire.response_headers), metadata: metadataOf(wire) }
    case 'request_body':
    case 'response_body': {
      const body = wire[wire.request]
      return { kind: wire.request, body: body?.body ?? noBytes, endOfStream: body?.end_of_stream ?? false }
    }
    case 'request_trailers':
    case 'response_trailers':
      return { kind: wire.request }
    default:
      return { kind: 'unknown' }
  }
}

const headersOf = (wire: WireHeaders | undefined) => ({
  headers: createHeaderLookup(wire?.headers),
  endOfStream: wire?.end_of_stream ?? false,
})

const metadataOf =
  ({ metadata_context }: WireRequest): MetadataLookup =>
  (namespace, key) => {
    const value = ownMember(ownMember(metadata_context?.filter_metadata, namespace)?.fields, key)
    const texts = value?.listValue?.values?.map(({ stringValue = '' }) => stringValue) ?? value?.stringValue?.split(',')
    return texts?.map((text) => text.trim())
  }

const ownMember = <T>(members: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined

/** Mode NONE is number 0, which is not sent; only the first message of a stream has the modes at all. */
const modesOf = (config: WireRequest['protocol_config']) => ({
  bodyMode: (config && bodyModes[config.request_body_mode ?? 0]) ?? ('unknown' as const),
  responseBodySent: (config?.response_body_mode ?? 0) !== 0,
})

const none: readonly string[] = Object.freeze([])

/** Headers by name. */
const createHeaderLookup = ({ headers = [] }: WireHeaders['headers'] = {}): HeaderLookup => {
  const values = new Map<string, string[]>()
  for (const { key = '', raw_value = noBytes } of headers) {
    const text = raw_value.toString('latin1')
    const others = values.get(key)
    if (others === undefined) values.set(key, [text])
    else others.push(text)
  }
  return (name) => values.get(name) ?? none
}

/** SKIP; of bodies NONE, the default. Envoy reads it in replies to headers, where `allow_mode_override` is set. */
const nothingElse = { response_header_mode: 2, request_trailer_mode: 2, response_trailer_mode: 2 }

const toMessage = (reply: Reply): object => {
  switch (reply.kind) {
    case 'continue': {
      const { phase, setHeaders = {}, removeHeaders, destinations, body } = reply
      const isTrailers = phase === 'request_trailers' || phase === 'response_trailers'
      const part = isTrailers
        ? {}
        : { response: { ...headerMutation(setHeaders, removeHeaders), ...bodyMutation(body) } }
      return { [phase]: part, ...dynamicMetadata(destinations) }
    }
    case 'decision':
      return {
        ...decisionMessage(reply.phase, reply.decision, reply.path),
        ...(reply.isLast === true ? { mode_override: nothingElse } : {}),
      }
    case 'body': {
      const { phase, body, endOfStream: end_of_stream } = reply
      return { [phase]: { response: { body_mutation: { streamed_response: { body, end_of_stream } } } } }
    }
    case 'extend':
      return {
        override_message_timeout: {
          seconds: Math.floor(reply.milliseconds / 1000),
          nanos: Math.floor(reply.milliseconds % 1000) * 1_000_000,
        },
      }
  }
}
