import type { HeadersDecision, ResponseObserver } from '../../../src/context/context-cache-manager.ts'
import type { BodyMode, Reply } from '../../../src/extproc/codec.ts'
import {
  advance,
  type ExchangeEffect,
  type ExchangeInput,
  type ExchangeState,
  initialExchange,
} from '../../../src/extproc/exchange.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'

/** Short names for what happens to a stream, so that a test reads as its story. */

/** Headers of a request whose response Envoy does not send. */
export const headers = (bodyMode: BodyMode = 'buffered', endOfStream = false): ExchangeInput => ({
  kind: 'request_headers',
  headers: () => [],
  endOfStream,
  bodyMode,
  responseBodySent: false,
})

/** Headers of a request whose response Envoy sends too. */
export const headersWithResponse = (endOfStream = false): ExchangeInput => ({
  kind: 'request_headers',
  headers: () => [],
  endOfStream,
  bodyMode: 'buffered',
  responseBodySent: true,
})

export const body = (text: string, endOfStream = true): ExchangeInput => ({
  kind: 'request_body',
  body: Buffer.from(text),
  endOfStream,
})

const decided = (decision: HeadersDecision): ExchangeInput => ({ kind: 'decision', decision })

export const pass = decided({ kind: 'passthrough', destinations: [] })

/** An observer; the machine only hands it on. */
export const observer: ResponseObserver = {
  setHeaders: { 'x-seen': 'yes' },
  head: () => 'more',
  chunk: () => 'more',
  end: () => {},
}

export const passObserved = decided({ kind: 'passthrough', destinations: [], observer })
export const reject = decided({ kind: 'reject', error: new GatewayError('session_not_found') })
export const needBody = decided({
  kind: 'need-body',
  decide: () => Promise.resolve({ kind: 'passthrough', destinations: [] }),
})

export const more = (milliseconds: number): ExchangeInput => ({ kind: 'extend', milliseconds })

export const enough: ExchangeInput = { kind: 'enough' }
export const trailers: ExchangeInput = { kind: 'request_trailers' }
export const responseHeaders: ExchangeInput = { kind: 'response_headers', headers: () => [], endOfStream: false }
export const bodilessResponse: ExchangeInput = { kind: 'response_headers', headers: () => [], endOfStream: true }
export const responseBody: ExchangeInput = { kind: 'response_body', body: Buffer.from('a'), endOfStream: false }
export const lastResponseBody: ExchangeInput = { kind: 'response_body', body: Buffer.from('z'), endOfStream: true }
export const responseTrailers: ExchangeInput = { kind: 'response_trailers' }
export const unknown: ExchangeInput = { kind: 'unknown' }
export const drain: ExchangeInput = { kind: 'drain' }
export const halfClosed: ExchangeInput = { kind: 'half_closed' }
export const closed: ExchangeInput = { kind: 'closed' }

/** Limit for bodies in these stories. */
export const maxBodyBytes = 10

/** Plays inputs from the beginning, and returns every effect in words. */
export const play = (inputs: readonly ExchangeInput[]): readonly string[] => {
  let state: ExchangeState = initialExchange
  const effects: string[] = []
  for (const input of inputs) {
    const step = advance(state, input, maxBodyBytes)
    state = step.state
    effects.push(...step.effects.map(describeEffect))
  }
  return effects
}

const describeEffect = (effect: ExchangeEffect): string => {
  switch (effect.kind) {
    case 'decide_on_body':
      return `decide_on_body "${effect.body.toString()}"`
    case 'reply':
      return describeReply(effect.reply)
    case 'end':
      return `end ${effect.status}`
    case 'observe_chunk':
      return `observe "${effect.bytes.toString()}"`
    case 'observe_end':
      return `observe ${effect.how}`
    case 'decide_on_headers':
    case 'observe_head':
    case 'rewrite_head':
    case 'rewrite_chunk':
    case 'rewrite_trailers':
    case 'rewrite_end':
    case 'abort':
    case 'fault':
      return effect.kind
  }
}

const describeReply = (reply: Reply): string => {
  switch (reply.kind) {
    case 'continue':
      return reply.setHeaders === undefined
        ? `continue ${reply.phase}`
        : `set ${Object.keys(reply.setHeaders).join()} ${reply.phase}`
    case 'decision':
      return reply.decision.kind === 'reject'
        ? `reject ${reply.decision.error.code} ${reply.phase}`
        : `${reply.decision.kind} ${reply.phase}`
    case 'extend':
      return `extend ${reply.milliseconds}`
    case 'body':
      throw new Error('only the endpoint picker sends this')
  }
}
