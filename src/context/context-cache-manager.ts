import type { GatewayError } from '../openai/gateway-error.ts'
import type { TokenUsage } from '../openai/usage.ts'
import type { ResponseCapture } from '../responsecache/response-capture.ts'
import type { AnswerRewriter } from '../responses/answer-rewriter.ts'

/** An HTTP request, without anything of Envoy's protocol. */
export interface GatewayRequest {
  readonly method: string
  /** Path with query, as normalised by Envoy. */
  readonly path: string
  /** All values of a header in order, bytes as latin1; empty when the header is missing. `name` in lower case. */
  header(name: string): readonly string[]
  /** `true`: no body follows. */
  readonly endOfStream: boolean
  /** Whether Envoy sends the body when it is asked to; where it does not, the headers decide. */
  readonly bodyReadable: boolean
  /** Set where the gateway, as endpoint picker, routes every request. Default: Envoy routes those without a session. */
  readonly pick?: { readonly subset: readonly string[] | undefined }
}

/** Scope of a request while a decision is made. */
export interface RequestScope {
  /** Aborted when the client disconnects or Envoy cancels the request. */
  readonly signal: AbortSignal
  /** Tells Envoy that this decision takes up to `milliseconds` from now. Only the first call of a request counts. */
  extendDeadline(milliseconds: number): void
  /** Ends the count of the body's memory: the decision has read it. */
  releaseBody(): void
}

/** `Ticket`: text for Envoy, and what the text tells within the context module. */
export type Decision<Ticket = string> =
  /** The request goes on to `destinations` (chosen pod first) if there are any. */
  | ({
      readonly kind: 'passthrough'
      readonly destinations: readonly string[]
      /** Request headers to set. Default: none. */
      readonly requestHeaders?: Readonly<Record<string, string>>
    } & PassingMessages)
  | ForwardDecision<Ticket>
  /** A response by the gateway. `body` is sent as JSON. */
  | {
      readonly kind: 'response'
      readonly status: number
      readonly body: unknown
      readonly headers: Readonly<Record<string, string>>
    }
  /** An engine's earlier response, sent with status 200. */
  | {
      readonly kind: 'cached-response'
      readonly contentType: string
      readonly body: Buffer
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly kind: 'reject'; readonly error: GatewayError }
  /** The client disconnected: Envoy does not read the decision. */
  | { readonly kind: 'cancelled' }

/** What happens to a request's body and to its response on their way. Default: both pass unchanged. */
export interface PassingMessages {
  /** Goes on in place of the request's body. Only where the decision was made on the whole body. */
  readonly body?: Buffer
  /** Path on the engine. Default: the client's. */
  readonly path?: string | undefined
  readonly observer?: ResponseObserver
  /** Beside which there is no `observer`. */
  readonly rewriter?: ResponseRewriter
}

/** A request that goes to an engine. */
export interface ForwardDecision<Ticket = string> extends PassingMessages {
  readonly kind: 'forward'
  /** `host:port`, the chosen pod first, then the fallbacks for retries. */
  readonly destinations: readonly [string, ...string[]]
  /** Request headers to set (names in lower case). */
  readonly requestHeaders: Readonly<Record<string, string>>
  /** Members that Envoy appends to the body object: JSON without the braces; undefined: none. */
  readonly splice: string | undefined
  /** If the body's `model` differs, Envoy answers 400 `model_mismatch`; undefined: not compared. */
  readonly expectModel: string | undefined
  /** Headers that Envoy adds to a 2xx response. */
  readonly responseHeaders: Readonly<Record<string, string>>
  /** Returns with the turn's end, perhaps to another gateway process. Undefined: nothing to do at the end. */
  readonly ticket: Ticket | undefined
}

/**
 * Receives the response to a request, where Envoy sends it. It neither changes nor delays the response, and must not
 * throw. `end` is called exactly once, and last, however the request or its stream ends.
 */
export interface ResponseObserver extends ResponseCapture {
  /** Headers to set on the response, whatever its status (names in lower case). */
  readonly setHeaders: Readonly<Record<string, string>>
}

/** Changes the response to a request as it passes, where Envoy sends it. */
export type ResponseRewriter = AnswerRewriter

export type HeadersDecision<Ticket = string> =
  | Decision<Ticket>
  | {
      readonly kind: 'need-body'
      /** So many of its first bytes are enough. Default: the whole body is needed. */
      readonly prefixBytes?: number
      /** Rejects rather than throws. */
      readonly decide: (body: Buffer, scope: RequestScope) => Promise<Decision<Ticket>>
    }

/** A turn that has ended, from Envoy's access log. */
export interface EndedTurn extends TurnEnd {
  /** Encoded ticket. */
  readonly ticket: string
}

/** How a turn ended. */
export interface TurnEnd {
  /** HTTP status; 0 when no response was sent. */
  readonly status: number
  /** The response was sent in full: no reset, no disconnected client, no failed stream. */
  readonly complete: boolean
  /** The client disconnected before the response had ended. */
  readonly clientDisconnected: boolean
  /** The pod refused, or reset. An answer that takes too long says nothing of its pod. */
  readonly upstreamFailed: boolean
  /** `host:port` of the pod that served; undefined if none did. */
  readonly servedBy: string | undefined
  /** From the response's `usage`; undefined when it had none. */
  readonly usage: TokenUsage | undefined
  /** From the request's last byte to the pod's first, milliseconds. */
  readonly ttfbMs: number | undefined
  /** The response was a stream of events. Default: it was not, or none came. */
  readonly isStream?: boolean
}

/**
 * Header with the key of a request, by which Envoy reports a client that disconnected before the decision was read. The
 * turn's id begins with it, and the gateway trusts it: each wiring must overwrite the client's value with a random
 * one. Otherwise a client that knows the key of another request can end its turn. Pods do not receive the header.
 */
export const requestKeyHeader = 'x-context-request-key'

/**
 * Headers in which Envoy's Lua filter says what it found in a body (`deploy/envoy/session-names.lua`). Each wiring removes
 * what clients send in them; pods do not receive them.
 */
export const filterHeaders = {
  model: 'x-context-model',
  name: 'x-context-name',
  marks: 'x-context-marks',
  ttl: 'x-context-ttl',
  body: 'x-context-body',
} as const

/** Port of the gateway's domain: decides what happens to a request, and processes the end of its turn. */
export interface ContextCacheManager {
  /** Never rejects: errors are decisions. */
  onHeaders(request: GatewayRequest, scope: RequestScope): Promise<HeadersDecision>
  /**
   * Ends a turn, offload included. Never rejects. A ticket that no gateway of this deployment made has no effect, nor
   * has a second report of the same end while this process remembers the turn (its last 50,000).
   */
  endTurn(turn: EndedTurn): Promise<void>
  /**
   * The client of the request with this key (`requestKeyHeader`) disconnected before Envoy had read the decision: its
   * turn ends, if this process started one. Never rejects.
   */
  clientDisconnected(requestKey: string): Promise<void>
}
