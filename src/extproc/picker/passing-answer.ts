import type {
  ContextCacheManager,
  ForwardDecision,
  ResponseObserver,
  ResponseRewriter,
  TurnEnd,
} from '../../context/context-cache-manager.ts'
import { type AnswerReader, createAnswerReader, isEventStream } from '../../openai/answer-reader.ts'
import { GatewayError, toErrorResponse } from '../../openai/gateway-error.ts'
import type { ExtProcEvent } from '../codec.ts'
import { destinationKey } from '../replies.ts'

/** What the answer to a forwarded request needs. */
export type Forwarded = Pick<ForwardDecision, 'responseHeaders' | 'ticket'> & {
  /** The chosen pod; undefined: Envoy chooses. */
  readonly pod: string | undefined
  /** Of the request: an error takes the form of its API. */
  readonly path: string | undefined
  readonly observer: ResponseObserver | undefined
  readonly rewriter: ResponseRewriter | undefined
}

interface AnswerParts {
  readonly service: Pick<ContextCacheManager, 'endTurn'>
  readonly fault: (error: unknown) => void
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** Headers by which the gateway tells which session an answer belongs to: an engine's own are removed. */
const ownHeaders = ['x-session-id', 'x-context-cache'] as const

const gatewayTimeout = 504

/** Envoy's text about a pod that it cannot reach is replaced by an error that SDKs understand. */
const unreachable = (path: string | undefined) => {
  const { headers, body } = toErrorResponse(new GatewayError('no_ready_endpoints'), path)
  const setHeaders = { ':status': '503', 'content-type': 'application/json', ...headers }
  return { setHeaders, removeHeaders: [], body: Buffer.from(JSON.stringify(body)) }
}

/** The answer to one request as it passes. It ends the turn, once, however the answer ends. */
export class PassingAnswer {
  readonly #forwarded: Forwarded
  readonly #parts: AnswerParts
  #reader: AnswerReader | undefined
  #observer: Forwarded['observer']
  #rewriter: Forwarded['rewriter']
  #sentMs: number | undefined
  #head: Pick<TurnEnd, 'status' | 'servedBy' | 'upstreamFailed' | 'isStream'> | undefined
  #ttfbMs: number | undefined
  #hasEnded = false
  #isRefused = false

  constructor(forwarded: Forwarded, parts: AnswerParts) {
    this.#forwarded = forwarded
    this.#parts = parts
    this.#observer = forwarded.observer
    this.#rewriter = forwarded.rewriter
  }

  get hasBegun(): boolean {
    return this.#head !== undefined
  }

  /** The whole request was forwarded. */
  requestSent(): void {
    this.#sentMs = this.#parts.now()
  }

  /** The answer begins. Returns the changes to its headers, and a `body` that replaces its own. */
  head({ headers, metadata }: Extract<ExtProcEvent, { kind: 'response_headers' }>): {
    readonly setHeaders: Readonly<Record<string, string>>
    readonly removeHeaders: readonly string[]
    readonly body?: Buffer
  } {
    const { responseHeaders, pod } = this.#forwarded
    const status = Number(headers(':status')[0] ?? 0)
    const [contentType = ''] = headers('content-type')
    // Envoy's reply for a pod that it cannot reach. The router marks what a pod answered.
    const isEnvoys = status >= 502 && headers('x-envoy-upstream-service-time').length === 0 && !/json/.test(contentType)
    const [served] = metadata?.('envoy.lb', `${destinationKey}-served`) ?? []
    this.#head = {
      status,
      servedBy: isEnvoys ? undefined : (served ?? pod),
      upstreamFailed: isEnvoys && status !== gatewayTimeout,
      isStream: isEventStream(contentType),
    }
    if (isEnvoys && status !== gatewayTimeout) return unreachable(this.#forwarded.path)
    const isGood = status >= 200 && status < 300
    if (isGood && this.#forwarded.ticket !== undefined)
      this.#reader = createAnswerReader(contentType, headers('content-encoding'))
    this.#observe((observer) => observer.head(status, headers))
    if (this.#rewriter?.head(status, headers) === 'pass') this.#endRewriter()
    const isOurs = Object.keys(responseHeaders).length > 0
    const ours = isOurs ? ownHeaders.filter((name) => headers(name).length > 0) : []
    return {
      setHeaders: { ...(isGood ? responseHeaders : {}), ...this.#forwarded.observer?.setHeaders },
      // The length that an answer was announced with is not the one that it will have.
      removeHeaders: this.#rewriter === undefined ? ours : [...ours, 'content-length'],
    }
  }

  /** What goes on in place of a piece of the answer, which {@link chunk} has taken. Undefined: the piece itself. */
  rewritten(bytes: Buffer, isLast: boolean): Buffer | Promise<Buffer> | undefined {
    return this.#rewriter?.chunk(bytes, isLast)
  }

  chunk(bytes: Buffer): void {
    // Not the headers: vLLM sends those of a stream before it computes anything.
    if (this.#sentMs !== undefined && bytes.length > 0) this.#ttfbMs ??= this.#parts.now() - this.#sentMs
    this.#read(bytes)
    this.#observe((observer) => observer.chunk(bytes))
  }

  /** `broken`: the client or the pod is gone, or nobody knows the end. A second call has no effect. */
  end(how: 'complete' | 'broken'): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#observe((observer) => {
      observer.end(how)
      return 'more'
    })
    this.#endRewriter()
    const { isWhole, usage } = this.#reader?.result() ?? { isWhole: true, usage: undefined }
    const head = this.#head ?? { status: 0, servedBy: undefined, upstreamFailed: false }
    this.#endTurn({
      ...head,
      ttfbMs: this.#ttfbMs,
      complete: how === 'complete' && isWhole,
      // A pod that dies in the middle of its answer looks the same; its health check tells.
      clientDisconnected: how === 'broken' && !this.#isRefused,
      usage,
    })
  }

  /** The gateway answered instead of the pod. */
  refused(status: number): void {
    this.#isRefused = true
    this.#head ??= { status, servedBy: undefined, upstreamFailed: false }
    this.end('broken')
  }

  #endRewriter(): void {
    this.#rewriter?.end()
    this.#rewriter = undefined
  }

  #endTurn(end: TurnEnd): void {
    const { ticket } = this.#forwarded
    if (ticket === undefined) return
    this.#parts.service.endTurn({ ticket, ...end }).catch(this.#parts.fault)
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader?.chunk(bytes)
    } catch (thrown) {
      this.#reader = undefined
      this.#parts.fault(thrown)
    }
  }

  /** An observer that throws or has enough gets no more than its end. */
  #observe(call: (observer: ResponseObserver) => 'more' | 'enough'): void {
    const observer = this.#observer
    if (observer === undefined) return
    try {
      if (call(observer) === 'more') return
      this.#observer = undefined
      observer.end('broken')
    } catch (thrown) {
      this.#observer = undefined
      this.#parts.fault(thrown)
    }
  }
}
