import { GatewayError } from '../openai/gateway-error.ts'
import { joinBody } from './collected-body.ts'
import { type ExchangeEffect, type ExchangeState, type ExchangeStep, goOn, step } from './exchange-state.ts'
import type { BodyMode, Reply } from './messages.ts'
import { type DecideOnBody, rejection, type Verdict } from './verdict.ts'

type DecidingOnHeaders = Extract<ExchangeState, { kind: 'deciding-on-headers' }>
type DecidingOnBody = Extract<ExchangeState, { kind: 'deciding-on-body' }>

/** The verdict on the headers is there. */
export const applyHeadersVerdict = (state: DecidingOnHeaders, verdict: Verdict): ExchangeStep => {
  switch (verdict.kind) {
    case 'immediate':
      return step({ kind: 'over', ended: false }, { kind: 'reply', reply: verdict })
    case 'proceed':
      return step(
        { kind: 'decided' },
        { kind: 'reply', reply: { ...verdict, phase: 'request-headers' } },
        ...state.held.map(goOn),
      )
    case 'need-body':
      return readBody(state, verdict.decide)
  }
}

const readBody = (state: DecidingOnHeaders, decide: DecideOnBody): ExchangeStep => {
  const { requestOnly } = state
  if (state.endOfStream) {
    return step(
      { kind: 'deciding-on-body', on: 'request-headers', requestOnly, extended: state.extended, held: state.held },
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
      { kind: 'deciding-on-body', on: 'request-body', requestOnly, extended: false, held: state.held.slice(last) },
      goOn('request-headers'),
      ...state.held.slice(0, last - 1).map(goOn),
      { kind: 'decide-on-body', decide, body: joinBody(state.body) },
    )
  }
  if (state.held.includes('request-trailers')) return misfit('trailers came in place of the end of a request body')
  return step(
    { kind: 'collecting', bodyMode: state.bodyMode, requestOnly, decide, body: state.body },
    goOn('request-headers'),
    ...state.held.map(goOn),
  )
}

/** In every other mode Envoy has sent the headers on, or never tells the whole body. */
const canReadBody = (bodyMode: BodyMode): boolean => bodyMode === 'buffered' || bodyMode === 'unknown'

/** The verdict on the whole request is there. */
export const applyBodyVerdict = (state: DecidingOnBody, verdict: Verdict): ExchangeStep => {
  switch (verdict.kind) {
    case 'immediate':
      return step({ kind: 'over', ended: false }, { kind: 'reply', reply: verdict })
    case 'proceed':
      return state.on === 'request-trailers'
        ? misfit('a request without a body cannot be changed at its trailers')
        : goOnAsDecided(state, { ...verdict, phase: state.on })
    case 'need-body':
      return misfit('the body is needed twice')
  }
}

/**
 * Envoy holds a stream with a body open until its answer has ended, and cuts that answer if the gateway dies; so the stream ends here where
 * nothing more will be told.
 */
const goOnAsDecided = (state: DecidingOnBody, reply: Reply): ExchangeStep => {
  const replies: readonly ExchangeEffect[] = [{ kind: 'reply', reply }, ...state.held.map(goOn)]
  return state.requestOnly
    ? step({ kind: 'over', ended: true }, ...replies, { kind: 'end', status: 'ok' })
    : step({ kind: 'decided' }, ...replies)
}

const misfit = (reason: string): ExchangeStep =>
  step(
    { kind: 'over', ended: false },
    { kind: 'fault', reason },
    { kind: 'reply', reply: rejection(new GatewayError('internal_error')) },
  )
