import type { ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import { advance, initialExchange } from '../../../src/extproc/exchange.ts'
import type {
  ExchangeEffect,
  ExchangeInput,
  ExchangeLimits,
  ExchangeState,
} from '../../../src/extproc/exchange-state.ts'
import type { BodyMode, Reply } from '../../../src/extproc/messages.ts'
import type { Verdict } from '../../../src/extproc/verdict.ts'

/** Short words for what happens to a stream, so that a test reads as its story. */

export const headers = (bodyMode: BodyMode = 'buffered', endOfStream = false): ExchangeInput => ({
  kind: 'request-headers',
  headers: () => [],
  endOfStream,
  bodyMode,
  answerMode: 'unknown',
})

/** Headers of a request whose response will not be told. */
export const headersOnly = (endOfStream = false, bodyMode: BodyMode = 'buffered'): ExchangeInput => ({
  kind: 'request-headers',
  headers: () => [],
  endOfStream,
  bodyMode,
  answerMode: 'untold',
})

/** Headers of a request whose answer will be told. */
export const headersOfTold = (endOfStream = false): ExchangeInput => ({
  kind: 'request-headers',
  headers: () => [],
  endOfStream,
  bodyMode: 'buffered',
  answerMode: 'told',
})

export const body = (text: string, endOfStream = true): ExchangeInput => ({
  kind: 'request-body',
  body: Buffer.from(text),
  endOfStream,
})

const proceedVerdict: Verdict = { kind: 'proceed', changes: { setHeaders: {}, metadata: {} } }

export const proceed: ExchangeInput = { kind: 'verdict', verdict: proceedVerdict }

/** Somebody who wants to be told of the answer; the machine only hands it on. */
export const observer: ResponseObserver = {
  setHeaders: { 'x-seen': 'yes' },
  head: () => 'more',
  chunk: () => 'more',
  end: () => {},
}

export const proceedObserved: ExchangeInput = {
  kind: 'verdict',
  verdict: { kind: 'proceed', changes: { setHeaders: {}, metadata: {} }, observer },
}

export const enough: ExchangeInput = { kind: 'enough' }

export const answer: ExchangeInput = {
  kind: 'verdict',
  verdict: { kind: 'immediate', answer: { status: 204, headers: {}, body: Buffer.alloc(0), details: 'ctx_answer' } },
}

export const needBody: ExchangeInput = {
  kind: 'verdict',
  verdict: { kind: 'need-body', decide: () => Promise.resolve({ kind: 'passthrough', destinations: [] }) },
}

export const more = (milliseconds: number): ExchangeInput => ({ kind: 'extend', milliseconds })

export const trailers: ExchangeInput = { kind: 'request-trailers' }
export const responseHeaders: ExchangeInput = { kind: 'response-headers', headers: () => [], endOfStream: false }
export const bodilessResponse: ExchangeInput = { kind: 'response-headers', headers: () => [], endOfStream: true }
export const responseBody: ExchangeInput = { kind: 'response-body', body: Buffer.from('a'), endOfStream: false }
export const lastResponseBody: ExchangeInput = { kind: 'response-body', body: Buffer.from('z'), endOfStream: true }
export const responseTrailers: ExchangeInput = { kind: 'response-trailers' }
export const unknown: ExchangeInput = { kind: 'unknown' }
export const halfClosed: ExchangeInput = { kind: 'half-closed' }
export const closed: ExchangeInput = { kind: 'closed' }

/** Limit for bodies in these stories, on a transport that waits for Envoy to end a stream. */
export const limits: ExchangeLimits = { maxBodyBytes: 10, endsFirst: false }

/** The same on a transport that does not. */
export const endingFirst: ExchangeLimits = { ...limits, endsFirst: true }

/** Plays inputs from the beginning, and tells every effect in words. */
export const play = (inputs: readonly ExchangeInput[], within = limits): readonly string[] => {
  let state: ExchangeState = initialExchange
  const told: string[] = []
  for (const input of inputs) {
    const step = advance(state, input, within)
    state = step.state
    told.push(...step.effects.map(describeEffect))
  }
  return told
}

export const describeEffect = (effect: ExchangeEffect): string => {
  switch (effect.kind) {
    case 'decide-on-headers':
      return 'decide on headers'
    case 'decide-on-body':
      return `decide on body "${effect.body.toString()}"`
    case 'reply':
      return describeReply(effect.reply)
    case 'end':
      return `end ${effect.status}`
    case 'observe-head':
      return 'tell head'
    case 'observe-chunk':
      return `tell "${effect.bytes.toString()}"`
    case 'observe-end':
      return `tell ${effect.how}`
    case 'abort':
    case 'fault':
      return effect.kind
  }
}

const describeReply = (reply: Reply): string => {
  switch (reply.kind) {
    case 'continue':
      return `continue ${reply.phase}`
    case 'proceed':
      return reply.phase === 'response-headers'
        ? `set ${Object.keys(reply.changes.setHeaders).join()}`
        : `proceed ${reply.phase}`
    case 'immediate':
      return `answer ${reply.answer.status}`
    case 'extend':
      return `wait ${reply.milliseconds}`
  }
}
