import type { SlicedWork } from '../../async/slices.ts'
import type { Decision, ForwardDecision, HeadersDecision, RequestScope } from '../../context/context-cache-manager.ts'
import { GatewayError } from '../../openai/gateway-error.ts'
import { KeptBytes } from '../../openai/kept-bytes.ts'
import { type BodySplicer, createBodySplicer, namesOtherModel } from '../../openai/splice-body.ts'
import type { ExtProcEvent, Reply } from '../codec.ts'
import type { GrpcStream, StreamHandler } from '../grpc-stream.ts'
import { decideSafely, type ProcessOptions } from '../process-stream.ts'
import { destinationKey, listOf } from '../replies.ts'
import { AnswerPieces } from './answer-pieces.ts'
import { BodySender } from './body-sender.ts'
import { type Forwarded, PassingAnswer } from './passing-answer.ts'
import { headersToRemove, toPickRequest } from './picker-request.ts'

type RequestHeaders = Extract<ExtProcEvent, { kind: 'request_headers' }>

/** How far the request is. */
type RequestState =
  | { readonly kind: 'fresh' }
  /** A decision is pending, and so is the reply to the headers. */
  | { readonly kind: 'deciding'; readonly request: RequestHeaders }
  /** More of the body is needed for the decision. */
  | {
      readonly kind: 'reading'
      readonly request: RequestHeaders
      readonly need: Extract<HeadersDecision, { kind: 'need-body' }>
    }
  /** `body` undefined: it passes unchanged. */
  | { readonly kind: 'forwarding'; readonly body: BodySplicer | undefined; readonly answer: PassingAnswer }
  /** The gateway or Envoy itself answers, or the stream is over. */
  | { readonly kind: 'over' }

const noBytes = Buffer.alloc(0)
/** Bytes of a body that are forwarded at once, some 1 ms. */
const sliceBytes = 262_144
/** Of the end of an object that is kept until it is known to be the end. More of it needs room in `bodyMemory`. */
const freeEndBytes = 4096

/**
 * One HTTP request in FULL_DUPLEX_STREAMED (endpoint picker): both bodies pass through. A request waits for its
 * decision, then its body passes as it comes; an answer is never held. Envoy sets no time limit: each decision has one.
 */
export class PickerStream implements StreamHandler<ExtProcEvent>, RequestScope {
  readonly #stream: GrpcStream<Reply>
  readonly #options: ProcessOptions
  readonly #requestBody: BodySender
  readonly #answerPieces: AnswerPieces
  readonly #abort = new AbortController()
  #state: RequestState = { kind: 'fresh' }
  readonly #kept = new KeptBytes()
  /** Of the body, what is on its way. */
  #passingBytes = 0
  /** What counts of this stream in `bodyMemory`. */
  #countedBytes = 0
  #isPassing = false
  #bodyEnd: 'open' | 'ended' | 'trailers' = 'open'
  #sinceMs = 0
  #path: string | undefined

  constructor(stream: GrpcStream<Reply>, options: ProcessOptions) {
    this.#stream = stream
    this.#options = options
    this.#requestBody = new BodySender(stream, 'request_body')
    this.#answerPieces = new AnswerPieces(stream, (error) => options.hooks.fault(error))
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  extendDeadline(): void {}

  /** The body is forwarded after its decision. */
  releaseBody(): void {}

  message(event: ExtProcEvent): void {
    switch (event.kind) {
      case 'request_headers':
        this.#begin(event)
        return
      case 'request_body':
        this.#takeBody(event.body, event.endOfStream ? 'ended' : 'open')
        return
      case 'request_trailers':
        this.#takeBody(noBytes, 'trailers')
        return
      case 'response_headers':
        this.#answerBegins(event)
        return
      case 'response_body':
        this.#answer?.chunk(event.body)
        this.#answerPieces.pass(event, this.#answer)
        return
      case 'response_trailers':
        this.#answerPieces.pass({ body: noBytes, endOfStream: true, hasTrailers: true }, this.#answer)
        return
      case 'unknown':
        this.#violation('a message of an unknown kind')
    }
  }

  halfClosed(): void {
    const isUndecided = this.#isUndecided
    this.#giveUp()
    this.#answerPieces.flush()
    this.#stream.end(
      isUndecided ? { code: 'cancelled', message: 'the request ended before its decision' } : { code: 'ok' },
    )
  }

  closed(): void {
    this.#giveUp()
  }

  get #isUndecided(): boolean {
    return this.#state.kind === 'deciding' || this.#state.kind === 'reading'
  }

  get #answer(): PassingAnswer | undefined {
    return this.#state.kind === 'forwarding' ? this.#state.answer : undefined
  }

  #begin(request: RequestHeaders): void {
    if (this.#state.kind !== 'fresh') {
      this.#violation('request_headers after the first message')
      return
    }
    this.#sinceMs = this.#options.now()
    this.#path = request.headers(':path')[0]
    this.#state = { kind: 'deciding', request }
    if (request.endOfStream) this.#bodyEnd = 'ended'
    void this.#decide(request, () => this.#options.service.onHeaders(toPickRequest(request), this))
  }

  async #decide(request: RequestHeaders, decide: () => Promise<HeadersDecision>): Promise<void> {
    const decision = await decideSafely(decide, this.#options.hooks)
    if (this.#state.kind !== 'deciding') this.#discard(decision)
    else if (decision.kind === 'need-body') {
      this.#state = { kind: 'reading', request, need: decision }
      this.#readOn()
    } else this.#apply(request, decision)
  }

  #apply(request: RequestHeaders, decision: Decision): void {
    const { hooks, now } = this.#options
    hooks.message('request_headers', now() - this.#sinceMs)
    if (decision.kind === 'forward' || decision.kind === 'passthrough') this.#forward(request, decision)
    else this.#respond(decision)
  }

  #forward(request: RequestHeaders, decision: Extract<Decision, { kind: 'forward' | 'passthrough' }>): void {
    const { maxBodyBytes } = this.#options
    const forward: Partial<ForwardDecision> = decision.kind === 'forward' ? decision : {}
    const { responseHeaders = {}, ticket, splice, expectModel } = forward
    const { destinations: pods, path, requestHeaders, observer, rewriter, body: newBody } = decision
    if (newBody !== undefined) {
      this.#kept.take()
      this.#kept.adopt(newBody)
      this.#count()
    }
    const destinations = listOf(pods)
    this.#stream.send({
      kind: 'continue',
      phase: 'request_headers',
      setHeaders: {
        ...requestHeaders,
        ...(path === undefined ? {} : { ':path': path }),
        ...(destinations === undefined ? {} : { [destinationKey]: destinations }),
      },
      removeHeaders: headersToRemove(request).filter(
        (name) => (name !== destinationKey || destinations === undefined) && requestHeaders?.[name] === undefined,
      ),
      destinations,
    })
    const answer = this.#answerTo({ responseHeaders, ticket, pod: pods[0], observer, rewriter })
    const isChanged = !request.endOfStream && (splice !== undefined || expectModel !== undefined)
    const body = isChanged ? createBodySplicer({ splice, maxBytes: maxBodyBytes }) : undefined
    this.#state = { kind: 'forwarding', body, answer }
    if (request.endOfStream) answer.requestSent()
    else void this.#passKept(expectModel)
  }

  /** Envoy may send the last piece twice. */
  #takeBody(piece: Buffer, end: 'open' | 'ended' | 'trailers'): void {
    const { kind } = this.#state
    if (kind === 'fresh') this.#violation('a body before request_headers')
    if (kind === 'fresh' || kind === 'over' || this.#bodyEnd !== 'open') return
    this.#bodyEnd = end
    if (kind === 'forwarding' && !this.#isPassing) {
      void this.#pass([piece], piece.length)
      return
    }
    this.#kept.add(piece)
    this.#count()
    if (kind === 'forwarding') return
    if (this.#kept.length > this.#options.maxBodyBytes) this.#reject(new GatewayError('request_too_large'))
    else if (this.#isMemoryFull) this.#reject(new GatewayError('rate_limit_exceeded'))
    else this.#readOn()
  }

  get #isMemoryFull(): boolean {
    const { bodyMemory } = this.#options
    return bodyMemory.heldBytes > bodyMemory.maxBytes
  }

  /** Counts what is held of the body now, wherever it is. */
  #count(): void {
    const splicer = this.#state.kind === 'forwarding' ? this.#state.body : undefined
    const bytes = this.#kept.takenBytes + this.#passingBytes + (splicer?.keptBytes() ?? 0)
    this.#options.bodyMemory.heldBytes += bytes - this.#countedBytes
    this.#countedBytes = bytes
  }

  /** Decides on the body when enough of it is there. */
  #readOn(): void {
    if (this.#state.kind !== 'reading') return
    const { request, need } = this.#state
    const isEnough = this.#bodyEnd !== 'open' || this.#kept.length >= (need.prefixBytes ?? Number.POSITIVE_INFINITY)
    if (!isEnough) return
    this.#state = { kind: 'deciding', request }
    const body = Buffer.concat(this.#kept.take())
    this.#kept.adopt(body)
    this.#count()
    void this.#decide(request, () => need.decide(body, this))
  }

  /** Forwards what is kept of the body. A turn that expects a model keeps the whole body, as one piece. */
  #passKept(expectModel?: string): Promise<void> {
    const bytes = this.#kept.takenBytes
    return this.#pass(this.#kept.take(), bytes, expectModel)
  }

  /** Forwards pieces, which take `bytes`: a slice at once, and the others as the peer reads what was sent. */
  async #pass(pieces: readonly Buffer[], bytes: number, expectModel?: string): Promise<void> {
    const passing = this.#passing(pieces, expectModel)
    this.#isPassing = true
    this.#passingBytes = bytes
    try {
      while (this.#state.kind === 'forwarding' && passing.next().done !== true) await this.#stream.ready()
    } catch (thrown) {
      this.#reject(GatewayError.from(thrown))
    }
    this.#isPassing = false
    this.#passingBytes = 0
    this.#count()
    if (this.#kept.length > 0) await this.#passKept()
  }

  *#passing(pieces: readonly Buffer[], expectModel?: string): SlicedWork<void> {
    if (this.#state.kind !== 'forwarding') return
    const { body, answer } = this.#state
    if (expectModel !== undefined) {
      for (const text of pieces) {
        if (yield* namesOtherModel(text, expectModel)) throw new GatewayError('model_mismatch', { param: 'model' })
      }
    }
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += sliceBytes) {
        if (at > 0) yield
        this.#sendPiece(piece.subarray(at, at + sliceBytes), body)
      }
    }
    if (this.#bodyEnd !== 'open' && this.#kept.length === 0) this.#sendEnd(body, answer)
  }

  #sendPiece(bytes: Buffer, body: BodySplicer | undefined): void {
    this.#requestBody.add(body?.piece(bytes) ?? bytes, false)
    this.#count()
    if (this.#isMemoryFull && (body?.keptBytes() ?? 0) > freeEndBytes) throw new GatewayError('rate_limit_exceeded')
  }

  #sendEnd(body: BodySplicer | undefined, answer: PassingAnswer): void {
    this.#requestBody.add(body?.end() ?? noBytes, this.#bodyEnd === 'ended')
    if (this.#bodyEnd === 'trailers') {
      this.#requestBody.flush()
      this.#stream.send({ kind: 'continue', phase: 'request_trailers' })
    }
    answer.requestSent()
  }

  /** A request that cannot go on. What was forwarded of it is no whole JSON text, which no pod computes. */
  #reject(error: GatewayError): void {
    const answer = this.#answer
    const isAnswered = answer?.hasBegun === true
    answer?.refused(error.status)
    if (isAnswered) {
      // The pod answers without the rest of the body.
      this.#bodyEnd = 'ended'
      this.#kept.take()
      this.#requestBody.add(noBytes, true)
      return
    }
    this.#abort.abort()
    this.#respond({ kind: 'reject', error })
  }

  #respond(decision: Decision): void {
    this.#over()
    this.#requestBody.drop()
    this.#stream.send({ kind: 'decision', phase: 'request_headers', decision, path: this.#path })
  }

  #answerBegins(event: Extract<ExtProcEvent, { kind: 'response_headers' }>): void {
    const phase = 'response_headers'
    const answer = this.#answer
    if (answer === undefined) {
      // Envoy's own reply to a request without a decision: a limit, a timeout.
      this.#giveUp()
      this.#stream.send({ kind: 'continue', phase })
      return
    }
    const { setHeaders, removeHeaders, body } = answer.head(event)
    this.#answerPieces.replaceBy(event.endOfStream ? undefined : body)
    this.#stream.send({ kind: 'continue', phase, setHeaders, removeHeaders })
    if (event.endOfStream) answer.end('complete')
  }

  /** A decision that comes too late: its turn ends at once. */
  #discard(decision: HeadersDecision): void {
    if (decision.kind !== 'forward' && decision.kind !== 'passthrough') return
    const { ticket } = decision.kind === 'forward' ? decision : { ticket: undefined }
    const { observer, rewriter } = decision
    this.#answerTo({ responseHeaders: {}, ticket, pod: undefined, observer, rewriter }).end('broken')
  }

  #answerTo(forwarded: Omit<Forwarded, 'path'>): PassingAnswer {
    const { service, hooks, now } = this.#options
    return new PassingAnswer({ ...forwarded, path: this.#path }, { service, now, fault: (error) => hooks.fault(error) })
  }

  #violation(reason: string): void {
    this.#options.hooks.fault(new Error(reason))
    this.#giveUp()
    this.#stream.end({ code: 'internal', message: 'the stream cannot continue' })
  }

  #giveUp(): void {
    if (this.#isUndecided) this.#abort.abort()
    this.#answer?.end('broken')
    this.#over()
  }

  #over(): void {
    this.#state = { kind: 'over' }
    this.#kept.take()
    this.#passingBytes = 0
    this.#count()
  }
}
