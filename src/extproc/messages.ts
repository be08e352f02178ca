import type { HeaderLookup } from './header-lookup.ts'

/** A step of an HTTP exchange that Envoy tells of, and waits for an answer to. */
export type Phase =
  | 'request-headers'
  | 'request-body'
  | 'request-trailers'
  | 'response-headers'
  | 'response-body'
  | 'response-trailers'

/** A phase in whose reply something can be changed: the request and where it goes, or the headers of its answer. */
export type ChangeablePhase = 'request-headers' | 'request-body' | 'response-headers'

/** Whether Envoy tells of the answer on a stream; `unknown` when it does not say. */
export type AnswerMode = 'told' | 'untold' | 'unknown'

/** How Envoy sends request bodies on a stream; `unknown` when it does not say. */
export type BodyMode =
  | 'none'
  | 'streamed'
  | 'buffered'
  | 'buffered-partial'
  | 'full-duplex-streamed'
  | 'grpc'
  | 'unknown'

/** What Envoy tells on a stream: one message, one event. */
export type ExtProcEvent =
  | {
      readonly kind: 'request-headers'
      readonly headers: HeaderLookup
      /** No body follows. */
      readonly endOfStream: boolean
      readonly bodyMode: BodyMode
      readonly answerMode: AnswerMode
    }
  /** `endOfStream` is missing on a whole body when trailers follow it. */
  | { readonly kind: 'request-body'; readonly body: Buffer; readonly endOfStream: boolean }
  /** `endOfStream`: the answer has no body. */
  | { readonly kind: 'response-headers'; readonly headers: HeaderLookup; readonly endOfStream: boolean }
  /** `body` is only valid until the event was taken. */
  | { readonly kind: 'response-body'; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: 'request-trailers' }
  | { readonly kind: 'response-trailers' }
  /** A message of a kind that this gateway does not know. */
  | { readonly kind: 'unknown' }

/** A value of Envoy's dynamic metadata. */
export type MetadataValue = string | { readonly [key: string]: MetadataValue }

/** Notes for Envoy's other filters, by namespace. */
export type DynamicMetadata = Readonly<Record<string, Readonly<Record<string, MetadataValue>>>>

/** What a decision changes about a request that goes on, or about its answer. */
export interface RequestChanges {
  /** Headers to set over what is there, names in lower case, values as latin1 bytes. */
  readonly setHeaders: Readonly<Record<string, string>>
  readonly metadata: DynamicMetadata
}

/** An HTTP response by the gateway itself. */
export interface ImmediateAnswer {
  readonly status: number
  /** Names in lower case, values as latin1 bytes. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Becomes Envoy's RESPONSE_CODE_DETAILS. */
  readonly details: string
}

/** What the gateway answers: exactly one per event, apart from `extend`. */
export type Reply =
  /** Go on unchanged. */
  | { readonly kind: 'continue'; readonly phase: Phase }
  /** Go on as decided. */
  | { readonly kind: 'proceed'; readonly phase: ChangeablePhase; readonly changes: RequestChanges }
  /** Do not go on: this is the response. */
  | { readonly kind: 'immediate'; readonly answer: ImmediateAnswer }
  /** The reply is still to come; wait this much longer. */
  | { readonly kind: 'extend'; readonly milliseconds: number }
