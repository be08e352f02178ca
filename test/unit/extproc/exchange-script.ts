import { advance, initialExchange } from '../../../src/extproc/exchange.ts'
import type { ExchangeEffect, ExchangeInput, ExchangeState } from '../../../src/extproc/exchange-state.ts'
import type { BodyMode, Reply } from '../../../src/extproc/messages.ts'
import type { Verdict } from '../../../src/extproc/verdict.ts'

/** Short words for what happens to a stream, so that a test reads as its story. */

export const headers = (bodyMode: BodyMode = 'buffered', endOfStream = false): ExchangeInput => ({
  kind: 'request-headers',
  headers: () => [],
  endOfStream,
  bodyMode,
  requestOnly: false,
})

/** Headers of a request whose response will not be told. */
export const headersOnly = (endOfStream = false): ExchangeInput => ({
  kind: 'request-headers',
  headers: () => [],
  endOfStream,
  bodyMode: 'buffered',
  requestOnly: true,
})

export const body = (text: string, endOfStream = true): ExchangeInput => ({
  kind: 'request-body',
  body: Buffer.from(text),
  endOfStream,
})

const proceedVerdict: Verdict = { kind: 'proceed', changes: { setHeaders: {}, metadata: {} } }

export const proceed: ExchangeInput = { kind: 'verdict', verdict: proceedVerdict }

export const answer: ExchangeInput = {
  kind: 'verdict',
  verdict: { kind: 'immediate', answer: { status: 204, headers: {}, body: Buffer.alloc(0), details: 'ctx_answer' } },
}

export const needBody: ExchangeInput = {
  kind: 'verdict',
  verdict: { kind: 'need-body', decide: () => Promise.resolve({ kind: 'pass', destinations: [] }) },
}

export const more = (milliseconds: number): ExchangeInput => ({ kind: 'extend', milliseconds })

export const trailers: ExchangeInput = { kind: 'request-trailers' }
export const responseHeaders: ExchangeInput = { kind: 'response-headers' }
export const responseBody: ExchangeInput = { kind: 'response-body' }
export const responseTrailers: ExchangeInput = { kind: 'response-trailers' }
export const unknown: ExchangeInput = { kind: 'unknown' }
export const halfClosed: ExchangeInput = { kind: 'half-closed' }
export const closed: ExchangeInput = { kind: 'closed' }

/** Limit for bodies in these stories. */
export const limits = { maxBodyBytes: 10 }

/** Plays inputs from the beginning, and tells every effect in words. */
export const play = (inputs: readonly ExchangeInput[]): readonly string[] => {
  let state: ExchangeState = initialExchange
  const told: string[] = []
  for (const input of inputs) {
    const step = advance(state, input, limits)
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
      return `proceed ${reply.phase}`
    case 'immediate':
      return `answer ${reply.answer.status}`
    case 'extend':
      return `wait ${reply.milliseconds}`
  }
}
