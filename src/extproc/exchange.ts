import type {
  Decision,
  HeadersDecision,
  PassingMessages,
  ResponseObserver,
  ResponseRewriter,
} from '../context/context-cache-manager.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { BodyMode, ExtProcEvent, HeaderLookup, Phase, Reply } from './codec.ts'

type RequestPhase = Extract<Phase, `request_${string}`>
type RequestHeaders = Extract<ExtProcEvent, { kind: 'request_headers' }>
type Part<Kind extends ExtProcEvent['kind']> = Extract<ExtProcEvent, { kind: Kind }>

/** Reads the body of a request, and decides then. */
export type DecideOnBody = Extract<HeadersDecision, { kind: 'need-body' }>['decide']

/** The state of one ext_proc stream. */
export type ExchangeState =
  /** No message received. */
  | { readonly kind: 'fresh' }
  /** A decision is pending, and the reply to `phase` is owed. `hasBody`: on the whole request, else on its headers. */
  | {
      readonly kind: 'deciding'
      readonly phase: RequestPhase
      readonly request: RequestHeaders
      readonly hasBody: boolean
      readonly extended: boolean
    }
  /** The body is needed and has not come. No reply is owed. */
  | { readonly kind: 'awaiting_body'; readonly request: RequestHeaders; readonly decide: DecideOnBody }
  /** The request is forwarded. All other phases continue. */
  | { readonly kind: 'decided' }
  /** The same, and the response has an observer. `next`: the part that comes next. */
  | { readonly kind: 'observing'; readonly observer: ResponseObserver; readonly next: 'head' | 'body' }
  /** The same, and the response has a rewriter, on which the replies wait. */
  | { readonly kind: 'rewriting'; readonly rewriter: ResponseRewriter; readonly next: 'head' | 'body' }
  /** Envoy answers the client by itself, before a decision. */
  | { readonly kind: 'overtaken' }
  /** The last reply was sent, or none can be. `ended`: this side of the stream is closed. */
  | { readonly kind: 'over'; readonly ended: boolean }

/** What happens to a stream. */
export type ExchangeInput =
  | ExtProcEvent
  /** The pending decision. */
  | { readonly kind: 'decision'; readonly decision: HeadersDecision }
  /** The pending decision takes longer. */
  | { readonly kind: 'extend'; readonly milliseconds: number }
  /** The observer or rewriter does not need the rest of the response. */
  | { readonly kind: 'enough' }
  /** The server stops: a stream that waits for Envoy alone ends. */
  | { readonly kind: 'drain' }
  /** Envoy sends nothing more: it is done with the request, or its client is gone. */
  | { readonly kind: 'half_closed' }
  /** The stream is gone. */
  | { readonly kind: 'closed' }

/** What is to be done, in this order. */
export type ExchangeEffect =
  | { readonly kind: 'decide_on_headers'; readonly request: RequestHeaders }
  | { readonly kind: 'decide_on_body'; readonly decide: DecideOnBody; readonly body: Buffer }
  /** Nobody waits for the decision any more. */
  | { readonly kind: 'abort' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'observe_head'; readonly observer: ResponseObserver; readonly headers: HeaderLookup }
  | { readonly kind: 'observe_chunk'; readonly observer: ResponseObserver; readonly bytes: Buffer }
  /** The last call of an observer; each gets exactly one. */
  | { readonly kind: 'observe_end'; readonly observer: ResponseObserver; readonly how: 'complete' | 'broken' }
  /** Ask the rewriter, and reply with what it returns. */
  | {
      readonly kind: 'rewrite_head'
      readonly rewriter: ResponseRewriter
      readonly part: Part<'response_headers'>
    }
  | { readonly kind: 'rewrite_chunk'; readonly rewriter: ResponseRewriter; readonly part: Part<'response_body'> }
  | { readonly kind: 'rewrite_trailers'; readonly rewriter: ResponseRewriter }
  /** The last call of a rewriter; each gets exactly one, after those that it still works on. */
  | { readonly kind: 'rewrite_end'; readonly rewriter: ResponseRewriter }
  /** An error that an operator should see. Another effect answers the client. */
  | { readonly kind: 'fault'; readonly reason: string }
  /** Close this side: `ok` only where no reply is owed, since Envoy forwards a request whose stream ends well. */
  | { readonly kind: 'end'; readonly status: 'ok' | 'cancelled' | 'internal' }

/** One step of the machine. */
export interface ExchangeStep {
  readonly state: ExchangeState
  readonly effects: readonly ExchangeEffect[]
}

type StateOf<Kind extends ExchangeState['kind']> = Extract<ExchangeState, { kind: Kind }>

/** The initial state of every stream. */
export const initialExchange: ExchangeState = { kind: 'fresh' }

/**
 * One ext_proc stream, as a pure function. Each message gets exactly one reply, in order, unless the stream is over or
 * Envoy answers the client by itself; a request is forwarded only after a decision; a stream that owes a reply never
 * ends well. A message out of order ends the stream with an error. A body above `maxBodyBytes` is answered 413.
 */
export const advance = (state: ExchangeState, input: ExchangeInput, maxBodyBytes: number): ExchangeStep => {
  if (state.kind === 'over') return afterTheEnd(state, input)
  switch (input.kind) {
    case 'request_headers':
      return state.kind === 'fresh'
        ? step(
            { kind: 'deciding', phase: 'request_headers', request: input, hasBody: false, extended: false },
            { kind: 'decide_on_headers', request: input },
          )
        : violation(state, 'request_headers after the first message')
    case 'request_body':
    case 'request_trailers':
      return onRestOfRequest(state, input, maxBodyBytes)
    case 'response_headers':
    case 'response_body':
    case 'response_trailers':
      return onResponse(state, input)
    case 'unknown':
      return violation(state, 'a message of an unknown kind')
    case 'decision':
      return onDecision(state, input.decision)
    case 'extend':
      return onExtend(state, input.milliseconds)
    case 'enough':
      return state.kind === 'observing' || state.kind === 'rewriting'
        ? step({ kind: 'decided' }, ...giveUp(state))
        : step(state)
    case 'drain':
      return state.kind === 'decided' ? step(ended, end('ok')) : step(state)
    case 'half_closed':
      return onHalfClosed(state)
    case 'closed':
      return step(ended, ...giveUp(state))
  }
}

const step = (state: ExchangeState, ...effects: readonly ExchangeEffect[]): ExchangeStep => ({ state, effects })
const end = (status: Extract<ExchangeEffect, { kind: 'end' }>['status']): ExchangeEffect => ({ kind: 'end', status })
const ended: ExchangeState = { kind: 'over', ended: true }
const replied: ExchangeState = { kind: 'over', ended: false }

const noBody = Buffer.alloc(0)

const continuePhase = (phase: Phase): ExchangeEffect => ({ kind: 'reply', reply: { kind: 'continue', phase } })

const abortPassing = ({ observer, rewriter }: PassingMessages): readonly ExchangeEffect[] => [
  ...(observer === undefined ? [] : [{ kind: 'observe_end', observer, how: 'broken' } as const]),
  ...(rewriter === undefined ? [] : [{ kind: 'rewrite_end', rewriter } as const]),
]

/** Releases what still waits for something of a stream that is over. */
const giveUp = (state: ExchangeState): readonly ExchangeEffect[] => {
  if (state.kind === 'deciding') return [{ kind: 'abort' }]
  return state.kind === 'observing' || state.kind === 'rewriting' ? abortPassing(state) : []
}

const afterTheEnd = (state: StateOf<'over'>, input: ExchangeInput): ExchangeStep => {
  if (input.kind === 'half_closed' && !state.ended) return step(ended, end('ok'))
  if (input.kind === 'decision') return discardLateDecision(state, input.decision)
  return input.kind === 'closed' ? step(ended) : step(state)
}

const discardLateDecision = (state: ExchangeState, decision: HeadersDecision): ExchangeStep =>
  step(state, ...abortPassing(passingOf(decision)))

const passingOf = (decision: HeadersDecision): PassingMessages =>
  decision.kind === 'passthrough' || decision.kind === 'forward' ? decision : {}

const violation = (state: ExchangeState, reason: string): ExchangeStep =>
  step(ended, ...giveUp(state), { kind: 'fault', reason }, end('internal'))

const onHalfClosed = (state: ExchangeState): ExchangeStep =>
  step(ended, ...giveUp(state), end(state.kind === 'deciding' || state.kind === 'awaiting_body' ? 'cancelled' : 'ok'))

const onExtend = (state: ExchangeState, milliseconds: number): ExchangeStep =>
  state.kind === 'deciding' && !state.extended && Number.isFinite(milliseconds) && milliseconds >= 1
    ? step({ ...state, extended: true }, { kind: 'reply', reply: { kind: 'extend', milliseconds } })
    : step(state)

/** In every other mode Envoy has forwarded the headers, or never sends the whole body. */
export const canReadBody = (bodyMode: BodyMode): boolean => bodyMode === 'buffered'

const onRestOfRequest = (
  state: ExchangeState,
  part: Part<'request_body' | 'request_trailers'>,
  maxBodyBytes: number,
): ExchangeStep => {
  switch (state.kind) {
    case 'awaiting_body': {
      // A buffered body comes whole. It has no end of stream where trailers follow; trailers alone: there is none.
      const body = part.kind === 'request_body' ? part.body : noBody
      const isTooLarge = body.length > maxBodyBytes
      return isTooLarge ? step(replied, reject(part.kind, 'request_too_large')) : decideOnBody(state, part.kind, body)
    }
    case 'decided':
    case 'observing':
    case 'rewriting':
      return step(state, continuePhase(part.kind))
    case 'fresh':
    case 'deciding':
    case 'overtaken':
    case 'over':
      return violation(state, `${part.kind} out of order`)
  }
}

const decideOnBody = (
  { request, decide }: Omit<StateOf<'awaiting_body'>, 'kind'>,
  phase: RequestPhase,
  body: Buffer,
  extended = false,
): ExchangeStep =>
  step({ kind: 'deciding', phase, request, hasBody: true, extended }, { kind: 'decide_on_body', decide, body })

const reject = (phase: RequestPhase, code: 'request_too_large' | 'internal_error'): ExchangeEffect => ({
  kind: 'reply',
  reply: { kind: 'decision', phase, decision: { kind: 'reject', error: new GatewayError(code) } },
})

const onDecision = (state: ExchangeState, decision: HeadersDecision): ExchangeStep => {
  if (state.kind !== 'deciding') return discardLateDecision(state, decision)
  if (decision.kind !== 'need-body') return applyDecision(state, decision)
  return state.hasBody ? unsupported(state.phase, 'the body is needed twice') : readBody(state, decision.decide)
}

const readBody = ({ request, extended }: StateOf<'deciding'>, decide: DecideOnBody): ExchangeStep => {
  if (request.endOfStream) return decideOnBody({ request, decide }, 'request_headers', noBody, extended)
  if (canReadBody(request.bodyMode))
    return step({ kind: 'awaiting_body', request, decide }, continuePhase('request_headers'))
  const { bodyMode } = request
  const reason = `a request body is needed, but request_body_mode is ${bodyMode}: it must be BUFFERED on this route`
  return unsupported('request_headers', reason)
}

/**
 * Replies with the decision, and leaves the end of the stream to Envoy, also where nobody observes the response: Envoy
 * resets a stream that the gateway ends first, and Node.js closes a connection with many resets.
 */
const applyDecision = ({ phase, request }: StateOf<'deciding'>, decision: Decision): ExchangeStep => {
  const passing = passingOf(decision)
  const { observer, rewriter } = passing
  const passesBy = observer === undefined && rewriter === undefined
  const isLast = phase === 'request_headers' && request.responseBodySent && passesBy
  const reply: ExchangeEffect = { kind: 'reply', reply: { kind: 'decision', phase, decision, isLast } }
  if (decision.kind !== 'passthrough' && decision.kind !== 'forward') return step(replied, reply)
  if (phase === 'request_trailers')
    return unsupported(phase, 'a request without a body cannot be changed at its trailers', passing)
  if (!request.responseBodySent) return step({ kind: 'decided' }, reply, ...abortPassing(passing))
  if (rewriter !== undefined) return step({ kind: 'rewriting', rewriter, next: 'head' }, reply)
  return observer === undefined
    ? step({ kind: 'decided' }, reply)
    : step({ kind: 'observing', observer, next: 'head' }, reply)
}

const unsupported = (phase: RequestPhase, reason: string, passing: PassingMessages = {}): ExchangeStep =>
  step(replied, ...abortPassing(passing), { kind: 'fault', reason }, reject(phase, 'internal_error'))

type ResponsePart = Part<'response_headers'> | Part<'response_body'> | Part<'response_trailers'>

/** Each part continues first with the observer's headers. Before a decision it is Envoy's: no route, limit, timeout. */
const onResponse = (state: ExchangeState, part: ResponsePart): ExchangeStep => {
  if (state.kind === 'decided') return step(state, continuePhase(part.kind))
  if (state.kind === 'rewriting') return onRewritten(state, part)
  if (state.kind !== 'observing') return step({ kind: 'overtaken' }, ...giveUp(state), continuePhase(part.kind))
  const { observer } = state
  const whole: ExchangeEffect = { kind: 'observe_end', observer, how: 'complete' }
  const decided: ExchangeState = { kind: 'decided' }
  if (part.kind === 'response_headers') {
    if (state.next !== 'head') return step(state, continuePhase(part.kind))
    const effects: readonly ExchangeEffect[] = [
      { kind: 'reply', reply: { kind: 'continue', phase: part.kind, setHeaders: observer.setHeaders } },
      { kind: 'observe_head', observer, headers: part.headers },
    ]
    return part.endOfStream ? step(decided, ...effects, whole) : step({ ...state, next: 'body' }, ...effects)
  }
  if (state.next === 'head') return step(decided, continuePhase(part.kind), ...abortPassing({ observer }))
  if (part.kind === 'response_trailers') return step(decided, continuePhase(part.kind), whole)
  const effects: readonly ExchangeEffect[] = [
    continuePhase(part.kind),
    { kind: 'observe_chunk', observer, bytes: part.body },
  ]
  return part.endOfStream ? step(decided, ...effects, whole) : step(state, ...effects)
}

/** Pieces wait for their replies in order; what comes out of order passes by. */
const onRewritten = (state: StateOf<'rewriting'>, part: ResponsePart): ExchangeStep => {
  const { rewriter } = state
  const over: ExchangeState = { kind: 'decided' }
  const last: ExchangeEffect = { kind: 'rewrite_end', rewriter }
  if (part.kind === 'response_headers') {
    if (state.next !== 'head') return step(state, continuePhase(part.kind))
    return part.endOfStream
      ? step(over, continuePhase(part.kind), last)
      : step({ ...state, next: 'body' }, { kind: 'rewrite_head', rewriter, part })
  }
  if (state.next === 'head') return step(over, continuePhase(part.kind), last)
  if (part.kind === 'response_trailers') return step(over, { kind: 'rewrite_trailers', rewriter }, last)
  const effect: ExchangeEffect = { kind: 'rewrite_chunk', rewriter, part }
  return part.endOfStream ? step(over, effect, last) : step(state, effect)
}
