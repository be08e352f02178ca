import type { GatewayError } from '../openai/gateway-error.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** An HTTP request as it stands in front of the engines, without anything of Envoy's protocol. */
export interface GatewayRequest {
  readonly method: string
  /** Path with query, as the client sent it and Envoy normalised it. */
  readonly path: string
  /** All values of a header in their order, bytes as latin1; none: empty. `name` in lower case. */
  header(name: string): readonly string[]
  /** `true`: no body follows. */
  readonly endOfStream: boolean
  /** Whether Envoy hands the body over when it is asked for; where it does not, a decision must be taken on the headers. */
  readonly bodyReadable: boolean
}

/** What the surroundings of a request offer while a decision is taken. */
export interface RequestScope {
  /** Fires when the client has gone or Envoy gave the request up: nobody waits for the decision any more. */
  readonly signal: AbortSignal
  /** Whether `signal` has fired. Asking for the signal makes it, which costs more than most decisions. */
  isAbandoned(): boolean
  /** Tells Envoy that this decision takes up to `milliseconds` from now. Only the first call of a request counts. */
  extendDeadline(milliseconds: number): void
}

export type Decision =
  /** Not ours: the request goes on untouched, to `destinations` (chosen pod first) if there are any. */
  | {
      readonly kind: 'passthrough'
      readonly destinations: readonly string[]
      readonly observer?: ResponseObserver
    }
  | ForwardDecision
  /** The gateway answers by itself. `body` is sent as JSON. */
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly body: unknown
      readonly headers: Readonly<Record<string, string>>
    }
  /** An engine's earlier answer, sent again with status 200. */
  | {
      readonly kind: 'replay'
      readonly contentType: string
      readonly body: Buffer
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly kind: 'reject'; readonly error: GatewayError }

/** A turn that goes to an engine. */
export interface ForwardDecision {
  readonly kind: 'forward'
  /** `host:port`, the chosen pod first, then the fallbacks for retries. */
  readonly destinations: readonly [string, ...string[]]
  /** The engine's path, where it is another than the client's. */
  readonly path: string | undefined
  /** Request headers to set (names in lower case). */
  readonly requestHeaders: Readonly<Record<string, string>>
  /** Members for Envoy to append to the body object: JSON without the braces, or undefined for none. */
  readonly splice: string | undefined
  /** The body's `model` must be this one, else Envoy answers 400 `model_mismatch`; undefined: it was checked already, or does not matter. */
  readonly expectModel: string | undefined
  /** Headers that Envoy adds to a 2xx answer. */
  readonly responseHeaders: Readonly<Record<string, string>>
  /** Comes back as a text with the end of the turn, perhaps to another gateway process. Undefined: nothing to do at the end. */
  readonly ticket: TurnTicket | undefined
  readonly observer?: ResponseObserver
}

/**
 * Sees the answer to a request go by, where Envoy tells of it; it neither changes nor delays what passes. It must not throw. Whatever becomes
 * of the request or its stream, `end` is called once, and nothing after it.
 */
export interface ResponseObserver {
  /** Headers to set on the answer, whatever its status is (names in lower case). */
  readonly setHeaders: Readonly<Record<string, string>>
  /** The answer begins. `enough`: the rest of it need not be told. */
  head(status: number, header: (name: string) => readonly string[]): 'more' | 'enough'
  /** A piece of its body, in order; `bytes` are only valid during the call. */
  chunk(bytes: Buffer): 'more' | 'enough'
  /** `complete`: the answer came to its end. `broken`: it did not, or its end is not known. */
  end(how: 'complete' | 'broken'): void
}

export type HeadersDecision =
  | Decision
  | { readonly kind: 'need-body'; readonly decide: (body: Buffer, scope: RequestScope) => Promise<Decision> }

/** A turn that has ended, as Envoy's access log tells it. */
export interface EndedTurn extends TurnEnd {
  /** The text of its ticket. */
  readonly ticket: string
}

/** How a turn ended. */
export interface TurnEnd {
  /** 0 when no answer was sent. */
  readonly status: number
  /** The answer arrived whole: no reset, no client that left, no failed stream. */
  readonly complete: boolean
  /** The client closed its connection before the answer had ended. */
  readonly clientDisconnected: boolean
  /** The upstream refused, reset or timed out. */
  readonly upstreamFailed: boolean
  /** `host:port` that served, if one did. */
  readonly servedBy: string | undefined
  /** From the answer's `usage`; undefined when it carried none. */
  readonly usage: TurnUsage | undefined
  /** From the request's last byte to the upstream's first, milliseconds. */
  readonly ttfbMs: number | undefined
}

/** Token counts of one answer. */
export interface TurnUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/**
 * The header by which Envoy tells that a request was left. Envoy makes its value up for each request, whatever the client sent, so that nobody can
 * guess the one of another. The gateway gets it with the request's headers; pods do not.
 */
export const requestKeyHeader = 'x-context-request-key'

/** The Context Cache Manager: decides what happens to a request, and is told how its turn ended. */
export interface ContextCacheManager {
  /** Never rejects: faults are decisions too. */
  onHeaders(request: GatewayRequest, scope: RequestScope): Promise<HeadersDecision>
  /** Never rejects. Resolves when the turn is settled (its offload included). */
  endTurn(turn: EndedTurn): Promise<void>
  /**
   * The client of the request with this key (`requestKeyHeader`) left before Envoy had read what was decided: its turn ends, if this process
   * began one. Never rejects.
   */
  clientDisconnected(requestKey: string): Promise<void>
}
