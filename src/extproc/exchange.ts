import { GatewayError } from '../openai/gateway-error.ts'
import { appendPiece, emptyBody, joinBody } from './collected-body.ts'
import { onAnswer } from './exchange-answer.ts'
import {
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeLimits,
  type ExchangeState,
  type ExchangeStep,
  goOn,
  type HeldPhase,
  letDown,
  step,
} from './exchange-state.ts'
import { applyBodyVerdict, applyHeadersVerdict } from './exchange-verdict.ts'
import type { BodyMode } from './messages.ts'
import { rejection, type Verdict } from './verdict.ts'

type StateOf<Kind extends ExchangeState['kind']> = Extract<ExchangeState, { kind: Kind }>
type Deciding = StateOf<'deciding-on-headers' | 'deciding-on-body'>
type RequestHeaders = Extract<ExchangeInput, { kind: 'request-headers' }>
type BodyPiece = Extract<ExchangeInput, { kind: 'request-body' }>
type AnswerPart = Extract<ExchangeInput, { kind: 'response-headers' | 'response-body' | 'response-trailers' }>

/** Messages that may wait for one verdict. Envoy waits for its reply as a rule, so that one or two are usual. */
const maxHeldMessages = 1024

/** Where every stream begins. */
export const initialExchange: ExchangeState = { kind: 'fresh' }

/**
 * The protocol of one ext_proc stream as a pure function. Each message gets exactly one reply, in order, unless the
 * stream is over or Envoy answers the client by itself; a request goes on only after a verdict; a stream that owes a
 * reply never ends well. A message out of order ends the stream with an error, which Envoy turns into a 500.
 */
export const advance = (state: ExchangeState, input: ExchangeInput, limits: ExchangeLimits): ExchangeStep => {
  if (state.kind === 'over') return afterTheEnd(state, input)
  switch (input.kind) {
    case 'request-headers':
      return onRequestHeaders(state, input)
    case 'request-body':
      return onRequestBody(state, input, limits)
    case 'request-trailers':
      return onRequestTrailers(state)
    case 'response-headers':
    case 'response-body':
    case 'response-trailers':
      return onResponse(state, input)
    case 'unknown':
      return violation(state, 'a message of an unknown kind')
    case 'verdict':
      return onVerdict(state, input.verdict, limits)
    case 'extend':
      return onExtend(state, input.milliseconds)
    case 'enough':
      return onEnough(state)
    case 'half-closed':
      return onHalfClosed(state)
    case 'closed':
      return step(ended, ...giveUp(state))
  }
}

const ended: ExchangeState = { kind: 'over', ended: true }

const isDeciding = (state: ExchangeState): state is Deciding =>
  state.kind === 'deciding-on-headers' || state.kind === 'deciding-on-body'

/** What is to be done for whoever still waits for something of a stream that is over. */
const giveUp = (state: ExchangeState): readonly ExchangeEffect[] => {
  if (isDeciding(state)) return [{ kind: 'abort' }]
  return state.kind === 'observing' ? letDown(state.observer) : []
}

const afterTheEnd = (state: StateOf<'over'>, input: ExchangeInput): ExchangeStep => {
  if (input.kind === 'half-closed' && !state.ended) return step(ended, { kind: 'end', status: 'ok' })
  if (input.kind === 'verdict') return step(state, ...unheard(input.verdict))
  return input.kind === 'closed' ? step(ended) : step(state)
}

/** A verdict that comes too late. */
const unheard = (verdict: Verdict): readonly ExchangeEffect[] =>
  verdict.kind === 'proceed' ? letDown(verdict.observer) : []

const onRequestHeaders = (state: ExchangeState, request: RequestHeaders): ExchangeStep =>
  state.kind === 'fresh'
    ? step(
        {
          kind: 'deciding-on-headers',
          endOfStream: request.endOfStream,
          bodyMode: request.bodyMode,
          answerMode: request.answerMode,
          extended: false,
          body: emptyBody,
          bodyComplete: request.endOfStream,
          held: [],
        },
        { kind: 'decide-on-headers', request },
      )
    : violation(state, 'request-headers after the first message')

const onRequestBody = (state: ExchangeState, piece: BodyPiece, limits: ExchangeLimits): ExchangeStep => {
  switch (state.kind) {
    case 'deciding-on-headers':
      return holdBody(state, piece, limits)
    case 'collecting':
      return collect(state, piece, limits)
    case 'deciding-on-body':
      return state.on === 'request-body' ? hold(state, 'request-body') : violation(state, 'request-body after its end')
    case 'decided':
    case 'observing':
      return step(state, goOn('request-body'))
    case 'fresh':
    case 'overtaken':
    case 'over':
      return violation(state, 'request-body out of order')
  }
}

const holdBody = (state: StateOf<'deciding-on-headers'>, piece: BodyPiece, limits: ExchangeLimits): ExchangeStep => {
  if (state.bodyComplete) return violation(state, 'request-body after its end')
  const body = appendPiece(state.body, piece.body)
  return body.bytes > limits.maxBodyBytes
    ? tooLarge(state)
    : hold({ ...state, body, bodyComplete: isWhole(state.bodyMode, piece) }, 'request-body')
}

const hold = (state: Deciding, phase: HeldPhase): ExchangeStep => {
  if (state.held.includes('request-trailers')) return violation(state, `${phase} after request-trailers`)
  if (state.held.length >= maxHeldMessages) return violation(state, 'too many messages without waiting for a reply')
  return step({ ...state, held: [...state.held, phase] })
}

const collect = (state: StateOf<'collecting'>, piece: BodyPiece, limits: ExchangeLimits): ExchangeStep => {
  const body = appendPiece(state.body, piece.body)
  if (body.bytes > limits.maxBodyBytes) return tooLarge(state)
  return isWhole(state.bodyMode, piece)
    ? decideOnBody({ ...state, body }, 'request-body')
    : step({ ...state, body }, goOn('request-body'))
}

/** Trailers may follow a buffered body, and then nothing marks it as whole: it always is. */
const isWhole = (bodyMode: BodyMode, piece: BodyPiece): boolean => piece.endOfStream || bodyMode === 'buffered'

const decideOnBody = ({ decide, body, answerMode }: StateOf<'collecting'>, on: HeldPhase): ExchangeStep =>
  step(
    { kind: 'deciding-on-body', on, answerMode, extended: false, held: [] },
    { kind: 'decide-on-body', decide, body: joinBody(body) },
  )

const onRequestTrailers = (state: ExchangeState): ExchangeStep => {
  switch (state.kind) {
    case 'deciding-on-headers':
      return hold(state, 'request-trailers')
    case 'deciding-on-body':
      return state.on === 'request-trailers'
        ? violation(state, 'request-trailers twice')
        : hold(state, 'request-trailers')
    case 'collecting':
      return decideOnBody(state, 'request-trailers')
    case 'decided':
    case 'observing':
      return step(state, goOn('request-trailers'))
    case 'fresh':
    case 'overtaken':
    case 'over':
      return violation(state, 'request-trailers out of order')
  }
}

/** A response without a verdict is Envoy's own: no route, a limit, a timeout. */
const onResponse = (state: ExchangeState, part: AnswerPart): ExchangeStep => {
  if (state.kind === 'observing') return onAnswer(state, part)
  if (state.kind === 'decided') return step(state, goOn(part.kind))
  return step({ kind: 'overtaken' }, ...giveUp(state), goOn(part.kind))
}

/** Every reply is out by now, so the stream may end well. */
const onEnough = (state: ExchangeState): ExchangeStep =>
  state.kind === 'observing' ? step(ended, ...giveUp(state), { kind: 'end', status: 'ok' }) : step(state)

const onVerdict = (state: ExchangeState, verdict: Verdict, limits: ExchangeLimits): ExchangeStep => {
  if (state.kind === 'deciding-on-headers') return applyHeadersVerdict(state, verdict, limits)
  return state.kind === 'deciding-on-body' ? applyBodyVerdict(state, verdict) : step(state, ...unheard(verdict))
}

const onExtend = (state: ExchangeState, milliseconds: number): ExchangeStep =>
  isDeciding(state) && !state.extended && Number.isFinite(milliseconds) && milliseconds >= 1
    ? step({ ...state, extended: true }, { kind: 'reply', reply: { kind: 'extend', milliseconds } })
    : step(state)

const onHalfClosed = (state: ExchangeState): ExchangeStep => {
  if (isDeciding(state)) return step(ended, { kind: 'abort' }, { kind: 'end', status: 'cancelled' })
  return step(ended, ...giveUp(state), { kind: 'end', status: state.kind === 'collecting' ? 'cancelled' : 'ok' })
}

const tooLarge = (state: ExchangeState): ExchangeStep => {
  const reply = rejection(new GatewayError('request_too_large'))
  const over: ExchangeState = { kind: 'over', ended: false }
  return isDeciding(state)
    ? step(over, { kind: 'abort' }, { kind: 'reply', reply })
    : step(over, { kind: 'reply', reply })
}

const violation = (state: ExchangeState, reason: string): ExchangeStep =>
  step(ended, ...giveUp(state), { kind: 'fault', reason }, { kind: 'end', status: 'internal' })
