import type {
  ContextCacheManager,
  Decision,
  GatewayRequest,
  HeadersDecision,
  RequestScope,
} from '../context/context-cache-manager.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import { envoyBodyBytes } from '../options/envoy-body-bytes.ts'
import type { BodyMode, ExtProcCodec, ExtProcEvent, HeaderLookup, Phase, Reply } from './codec.ts'
import {
  advance,
  canReadBody,
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeState,
  initialExchange,
} from './exchange.ts'
import type { GrpcStream, StreamHandler, StreamStatus } from './grpc-stream.ts'

/** Callbacks for metrics and logs. They must not throw. */
export interface ProcessHooks {
  streamOpened(): void
  /** Once for every `streamOpened`. */
  streamClosed(): void
  /** A message of `phase` got its reply after `milliseconds`. */
  message(phase: Phase, milliseconds: number): void
  /** An error that is not the client's: a decision that threw, a stream out of order, a wiring that cannot work. */
  fault(error: unknown): void
}

/** What a stream needs. */
export interface ProcessOptions {
  readonly service: Pick<ContextCacheManager, 'onHeaders' | 'endTurn'>
  readonly codec: ExtProcCodec
  /** A longer request body is answered 413. */
  readonly maxBodyBytes: number
  /** Request bodies of all streams: those held, and those that Envoy has been asked to send. */
  readonly bodyMemory: { readonly maxBytes: number; heldBytes: number }
  readonly hooks: ProcessHooks
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

type RequestHeaders = Extract<ExtProcEvent, { kind: 'request_headers' }>

/** The HTTP request behind the headers that Envoy sent. */
const toGatewayRequest = (head: {
  readonly headers: HeaderLookup
  readonly endOfStream: boolean
  readonly bodyMode: BodyMode
}): GatewayRequest => ({
  method: head.headers(':method')[0] ?? '',
  path: head.headers(':path')[0] ?? '',
  header: head.headers,
  endOfStream: head.endOfStream,
  bodyReadable: canReadBody(head.bodyMode),
})

/** Never rejects: an error becomes a fault, and a 500 for this client. The answer is always asynchronous. */
export const decideSafely = async (
  decide: () => Promise<HeadersDecision>,
  hooks: Pick<ProcessHooks, 'fault'>,
): Promise<HeadersDecision> => {
  try {
    return await decide()
  } catch (thrown) {
    hooks.fault(thrown)
    return failure(thrown)
  }
}

/** What a client gets for an unexpected error. */
export const failure = (thrown: unknown): Decision => ({ kind: 'reject', error: GatewayError.from(thrown) })

type DecideOnBodyEffect = Extract<ExchangeEffect, { kind: 'decide_on_body' }>

const startDecision = async ({ decide, body }: DecideOnBodyEffect, scope: RequestScope) => decide(body, scope)

/** One HTTP request in Envoy. */
export class ProcessStream implements StreamHandler<ExtProcEvent>, RequestScope {
  readonly #stream: GrpcStream<Reply>
  readonly #options: ProcessOptions
  /** Messages without a reply, in order: when each arrived. */
  readonly #unanswered: { readonly phase: Phase; readonly sinceMs: number }[] = []
  #state: ExchangeState = initialExchange
  #path: string | undefined
  readonly #abort = new AbortController()
  #isDraining = false
  /** What counts of this stream in `bodyMemory`. */
  #bodyBytes = 0
  #isReadingBody = false
  /** Settles when the rewriter is done with all that it was asked. */
  #rewritten: Promise<void> = Promise.resolve()

  constructor(stream: GrpcStream<Reply>, options: ProcessOptions) {
    this.#stream = stream
    this.#options = options
  }

  message(event: ExtProcEvent): void {
    if (event.kind === 'request_headers') this.#path = event.headers(':path')[0]
    if (event.kind !== 'unknown') this.#unanswered.push({ phase: event.kind, sinceMs: this.#options.now() })
    this.#take(event)
  }

  halfClosed(): void {
    this.#take({ kind: 'half_closed' })
  }

  drain(): void {
    this.#isDraining = true
    this.#take({ kind: 'drain' })
  }

  closed(): void {
    this.#take({ kind: 'closed' })
    if (!this.#isReadingBody) this.releaseBody()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  extendDeadline(milliseconds: number): void {
    this.#take({ kind: 'extend', milliseconds })
  }

  releaseBody(): void {
    this.#countBody(0)
  }

  #countBody(bytes: number): void {
    this.#options.bodyMemory.heldBytes += bytes - this.#bodyBytes
    this.#bodyBytes = bytes
  }

  #take(input: ExchangeInput): void {
    const next = advance(this.#state, input, this.#options.maxBodyBytes)
    this.#state = next.state
    for (const effect of next.effects) this.#perform(effect)
    if (this.#isDraining && next.state.kind === 'decided') this.#take({ kind: 'drain' })
  }

  #perform(effect: ExchangeEffect): void {
    switch (effect.kind) {
      case 'decide_on_headers':
        void this.#decideOnHeaders(effect.request)
        return
      case 'decide_on_body':
        void this.#decideOnBody(effect)
        return
      case 'abort':
        this.#abort.abort()
        return
      case 'reply':
        this.#stream.send(effect.reply.kind === 'decision' ? { ...effect.reply, path: this.#path } : effect.reply)
        this.#replied(effect.reply)
        return
      case 'observe_head':
        this.#observe(() => effect.observer.head(Number(effect.headers(':status')[0] ?? 0), effect.headers))
        return
      case 'observe_chunk':
        this.#observe(() => effect.observer.chunk(effect.bytes))
        return
      case 'observe_end':
        this.#observe(() => {
          effect.observer.end(effect.how)
          return 'more'
        })
        return
      case 'rewrite_head':
        this.#rewriteHead(effect)
        return
      case 'rewrite_chunk':
      case 'rewrite_trailers':
      case 'rewrite_end':
        this.#rewritten = this.#rewritten.then(() => this.#rewrite(effect))
        return
      case 'fault':
        this.#options.hooks.fault(new Error(effect.reason))
        return
      case 'end':
        this.#stream.end(endStatus[effect.status])
        return
    }
  }

  async #decideOnHeaders(request: RequestHeaders): Promise<void> {
    const { service, hooks } = this.#options
    const decision = await decideSafely(() => service.onHeaders(toGatewayRequest(request), this), hooks)
    const isExpected = decision.kind === 'need-body' && !request.endOfStream && this.#state.kind === 'deciding'
    const refused = isExpected && canReadBody(request.bodyMode) ? this.#expectBody(request) : undefined
    this.#take({ kind: 'decision', decision: refused ?? decision })
  }

  /** Counts a body before Envoy sends it: what has come of a message is held by grpc-js. Returns why it must not come. */
  #expectBody({ headers }: RequestHeaders): Decision | undefined {
    const { bodyMemory, maxBodyBytes } = this.#options
    const [length = ''] = headers('content-length')
    const bytes = /^\d{1,15}$/.test(length) ? Number(length) : Math.max(maxBodyBytes, envoyBodyBytes)
    if (bodyMemory.heldBytes + bytes > bodyMemory.maxBytes)
      return { kind: 'reject', error: new GatewayError('rate_limit_exceeded') }
    this.#countBody(bytes)
    return undefined
  }

  /** No function here keeps the body: it is free as soon as the service has read it. */
  #decideOnBody(effect: DecideOnBodyEffect): Promise<void> {
    this.#countBody(effect.body.length)
    this.#isReadingBody = true
    const started = startDecision(effect, this)
    return decideSafely(() => started, this.#options.hooks).then((decision) => {
      this.releaseBody()
      this.#isReadingBody = false
      this.#take({ kind: 'decision', decision })
    })
  }

  /** An observer that throws gets nothing more; the response continues. */
  #observe(call: () => 'more' | 'enough'): void {
    let need: 'more' | 'enough' = 'enough'
    try {
      need = call()
    } catch (thrown) {
      this.#options.hooks.fault(thrown)
    }
    if (need === 'enough') this.#take({ kind: 'enough' })
  }

  /** The length that an answer was announced with is not the one that it will have. */
  #rewriteHead({ rewriter, part: { kind: phase, headers } }: Extract<ExchangeEffect, { kind: 'rewrite_head' }>): void {
    const isRewritten = rewriter.head(Number(headers(':status')[0] ?? 0), headers) === 'rewrite'
    this.#continue({ kind: 'continue', phase, removeHeaders: isRewritten ? ['content-length'] : [] })
    if (!isRewritten) this.#take({ kind: 'enough' })
  }

  async #rewrite(
    effect: Extract<ExchangeEffect, { kind: 'rewrite_chunk' | 'rewrite_trailers' | 'rewrite_end' }>,
  ): Promise<void> {
    const { rewriter } = effect
    try {
      if (effect.kind === 'rewrite_chunk') {
        const { kind: phase, body: piece, endOfStream } = effect.part
        const body = await rewriter.chunk(piece, endOfStream)
        this.#continue({ kind: 'continue', phase, ...(body === piece ? {} : { body }) })
      } else if (effect.kind === 'rewrite_trailers') {
        // No reply to trailers has room for what is left.
        const rest = await rewriter.chunk(noBytes, true)
        if (rest.length > 0) throw new Error('an answer that is rewritten ended with trailers')
        this.#continue({ kind: 'continue', phase: 'response_trailers' })
      } else rewriter.end()
    } catch (thrown) {
      this.#options.hooks.fault(thrown)
      this.#stream.end(endStatus.internal)
    }
  }

  #continue(reply: Extract<Reply, { kind: 'continue' }>): void {
    this.#stream.send(reply)
    this.#replied(reply)
  }

  #replied(reply: Reply): void {
    if (reply.kind === 'extend') return
    const index = this.#unanswered.findIndex(({ phase }) => phase === reply.phase)
    const [answered] = index === -1 ? [] : this.#unanswered.splice(index, 1)
    if (answered !== undefined) this.#options.hooks.message(answered.phase, this.#options.now() - answered.sinceMs)
  }
}

const noBytes = Buffer.alloc(0)

const endStatus: Readonly<Record<Extract<ExchangeEffect, { kind: 'end' }>['status'], StreamStatus>> = {
  ok: { code: 'ok' },
  cancelled: { code: 'cancelled', message: 'the request ended before its decision' },
  internal: { code: 'internal', message: 'the stream cannot continue' },
}
