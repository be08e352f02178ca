import { GatewayError } from '../openai/gateway-error.ts'
import { canReadBody } from './body-modes.ts'
import { joinBody } from './collected-body.ts'
import {
  type ExchangeEffect,
  type ExchangeLimits,
  type ExchangeState,
  type ExchangeStep,
  goOn,
  letDown,
  step,
} from './exchange-state.ts'
import type { AnswerMode } from './messages.ts'
import { type DecideOnBody, rejection, type Verdict } from './verdict.ts'

type DecidingOnHeaders = Extract<ExchangeState, { kind: 'deciding-on-headers' }>
type DecidingOnBody = Extract<ExchangeState, { kind: 'deciding-on-body' }>

/** The verdict on the headers is there. */
export const applyHeadersVerdict = (
  state: DecidingOnHeaders,
  verdict: Verdict,
  { endsFirst }: Pick<ExchangeLimits, 'endsFirst'>,
): ExchangeStep => {
  switch (verdict.kind) {
    case 'immediate':
      return step({ kind: 'over', ended: false }, { kind: 'reply', reply: verdict })
    case 'proceed':
      return goOnAsDecided(state, verdict, {
        phase: 'request-headers',
        isLastMessage: endsFirst && state.bodyMode === 'none',
      })
    case 'need-body':
      return readBody(state, verdict.decide)
  }
}

const readBody = (state: DecidingOnHeaders, decide: DecideOnBody): ExchangeStep => {
  const { answerMode } = state
  if (state.endOfStream) {
    return step(
      { kind: 'deciding-on-body', on: 'request-headers', answerMode, extended: state.extended, held: state.held },
      { kind: 'decide-on-body', decide, body: joinBody(state.body) },
    )
  }
  if (!canReadBody(state.bodyMode)) {
    return misfit(
      `a request body is needed, but request_body_mode is ${state.bodyMode}: it must be BUFFERED on this route`,
    )
  }
  if (state.bodyComplete) {
    const last = state.body.pieces
    return step(
      { kind: 'deciding-on-body', on: 'request-body', answerMode, extended: false, held: state.held.slice(last) },
      goOn('request-headers'),
      ...state.held.slice(0, last - 1).map(goOn),
      { kind: 'decide-on-body', decide, body: joinBody(state.body) },
    )
  }
  if (state.held.includes('request-trailers')) return misfit('trailers came in place of the end of a request body')
  return step(
    { kind: 'collecting', bodyMode: state.bodyMode, answerMode, decide, body: state.body },
    goOn('request-headers'),
    ...state.held.map(goOn),
  )
}

/** The verdict on the whole request is there. */
export const applyBodyVerdict = (state: DecidingOnBody, verdict: Verdict): ExchangeStep => {
  switch (verdict.kind) {
    case 'immediate':
      return step({ kind: 'over', ended: false }, { kind: 'reply', reply: verdict })
    case 'proceed':
      return state.on === 'request-trailers'
        ? misfit('a request without a body cannot be changed at its trailers', letDown(verdict.observer))
        : goOnAsDecided(state, verdict, { phase: state.on, isLastMessage: true })
    case 'need-body':
      return misfit('the body is needed twice')
  }
}

type Proceed = Extract<Verdict, { kind: 'proceed' }>

/**
 * The request goes on. Envoy holds a stream that is to be told more open until the answer has ended, with every piece of it crossing; so the
 * stream ends here where nobody wants to be told.
 */
const goOnAsDecided = (
  state: { readonly answerMode: AnswerMode; readonly held: DecidingOnBody['held'] },
  { changes, observer }: Proceed,
  at: {
    readonly phase: 'request-headers' | 'request-body'
    /** Nothing more is told of the request. */
    readonly isLastMessage: boolean
  },
): ExchangeStep => {
  const effects: ExchangeEffect[] = [{ kind: 'reply', reply: { kind: 'proceed', phase: at.phase, changes } }]
  for (const phase of state.held) effects.push(goOn(phase))
  if (observer !== undefined && state.answerMode !== 'untold')
    return { state: { kind: 'observing', observer, next: 'head' }, effects }
  for (const effect of letDown(observer)) effects.push(effect)
  if (!isOver(state.answerMode, at.isLastMessage)) return { state: { kind: 'decided' }, effects }
  effects.push({ kind: 'end', status: 'ok' })
  return { state: { kind: 'over', ended: true }, effects }
}

/** Where no answer is told, Envoy ends a stream by itself if it may have told the last of the request. */
const isOver = (answerMode: AnswerMode, isLastMessage: boolean): boolean => {
  switch (answerMode) {
    case 'told':
      return true
    case 'untold':
      return isLastMessage
    case 'unknown':
      return false
  }
}

const misfit = (reason: string, before: readonly ExchangeEffect[] = []): ExchangeStep =>
  step(
    { kind: 'over', ended: false },
    ...before,
    { kind: 'fault', reason },
    { kind: 'reply', reply: rejection(new GatewayError('internal_error')) },
  )
