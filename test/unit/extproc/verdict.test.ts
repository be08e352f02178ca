import { describe, expect, test } from '@jest/globals'
import type { ForwardDecision, HeadersDecision } from '../../../src/context/context-cache-manager.ts'
import { encodeTicket } from '../../../src/context/turn-ticket.ts'
import type { ImmediateAnswer, RequestChanges } from '../../../src/extproc/messages.ts'
import { toVerdict, type Verdict } from '../../../src/extproc/verdict.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { observer } from './exchange-script.ts'

const plain: ForwardDecision = {
  kind: 'forward',
  destinations: ['10.0.0.1:8000'],
  path: undefined,
  requestHeaders: {},
  splice: undefined,
  expectModel: undefined,
  responseHeaders: {},
  ticket: undefined,
}

const changesOf = (verdict: Verdict): RequestChanges => {
  if (verdict.kind !== 'proceed') throw new Error(`proceed expected, not ${verdict.kind}`)
  return verdict.changes
}

const answerOf = (verdict: Verdict): ImmediateAnswer => {
  if (verdict.kind !== 'immediate') throw new Error(`immediate expected, not ${verdict.kind}`)
  return verdict.answer
}

describe('forward', () => {
  test.each<[string, Partial<ForwardDecision>, RequestChanges]>([
    [
      'one destination',
      {},
      { setHeaders: {}, metadata: { 'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' } } },
    ],
    [
      'everything',
      {
        destinations: ['10.0.0.1:8000', '10.0.0.2:8000'],
        path: '/v1/completions',
        requestHeaders: { 'x-a': 'b' },
        splice: '"cache_salt":"s"',
        expectModel: 'm',
        responseHeaders: { 'x-session-id': 'ctx_1', 'x-context-cache': 'none' },
        ticket: { turnId: 't', pod: '10.0.0.1:8000', session: undefined },
      },
      {
        setHeaders: { 'x-a': 'b', ':path': '/v1/completions' },
        metadata: {
          'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000,10.0.0.2:8000' },
          ctx: {
            splice: '"cache_salt":"s"',
            model: 'm',
            turn: encodeTicket({ turnId: 't', pod: '10.0.0.1:8000' }),
            headers: 'x-session-id:ctx_1\nx-context-cache:none\n',
          },
        },
      },
    ],
    [
      'framing headers never',
      { requestHeaders: { 'content-length': '7', 'transfer-encoding': 'chunked', 'x-a': 'b' } },
      { setHeaders: { 'x-a': 'b' }, metadata: { 'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' } } },
    ],
  ])('%s', (_name, part, changes) => {
    expect(changesOf(toVerdict({ ...plain, ...part }))).toEqual(changes)
  })
})

describe('passthrough', () => {
  test.each<[string, readonly string[], RequestChanges]>([
    ['nowhere in particular', [], { setHeaders: {}, metadata: {} }],
    [
      'to a pod',
      ['a:1', 'b:2'],
      { setHeaders: {}, metadata: { 'envoy.lb': { 'x-gateway-destination-endpoint': 'a:1,b:2' } } },
    ],
  ])('%s', (_name, destinations, changes) => {
    expect(changesOf(toVerdict({ kind: 'passthrough', destinations }))).toEqual(changes)
  })
})

test.each<[string, HeadersDecision]>([
  ['forwarded', plain],
  ['passed', { kind: 'passthrough', destinations: [] }],
])('an observer goes with what is %s', (_name, decision) => {
  expect(toVerdict({ ...decision, observer } as HeadersDecision)).toMatchObject({ kind: 'proceed', observer })
})

describe('answers', () => {
  test('are JSON, with their own headers', () => {
    const answer = answerOf(
      toVerdict({
        kind: 'response',
        status: 200,
        body: { object: 'list' },
        headers: { 'x-a': 'b', 'content-length': '9' },
      }),
    )
    expect(answer).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json', 'x-a': 'b' },
      body: Buffer.from('{"object":"list"}'),
      details: 'ctx_answer',
    })
  })

  test('are sent again to the byte', () => {
    const body = Buffer.from([1, 2, 3])
    const headers = { 'x-response-cache': 'hit', 'content-length': '9' }
    expect(answerOf(toVerdict({ kind: 'cached-response', contentType: 'text/event-stream', body, headers }))).toEqual({
      status: 200,
      headers: { 'content-type': 'text/event-stream', 'x-response-cache': 'hit' },
      body,
      details: 'ctx_replay',
    })
  })

  test.each([204, 304])('%i has no body', (status) => {
    expect(answerOf(toVerdict({ kind: 'response', status, body: {}, headers: {} })).body).toHaveLength(0)
  })

  test.each([
    ['undefined', undefined],
    ['a bigint', 1n],
    [
      'a circle',
      Object.defineProperty({}, 'toJSON', {
        value: () => {
          throw new Error('circle')
        },
      }),
    ],
  ])('a body that is no JSON throws: %s', (_name, body) => {
    expect(() => toVerdict({ kind: 'response', status: 200, body, headers: {} })).toThrow()
  })

  test('rejections have the shape of OpenAI errors, and details under the fixed prefix', () => {
    const answer = answerOf(
      toVerdict({
        kind: 'reject',
        error: new GatewayError('method_not_allowed', { param: 'x', headers: { allow: 'GET' } }),
      }),
    )
    expect(JSON.parse(answer.body.toString())).toEqual({
      error: {
        message: 'This method is not allowed here.',
        type: 'invalid_request_error',
        param: 'x',
        code: 'method_not_allowed',
      },
    })
    expect({ ...answer, body: undefined }).toEqual({
      status: 405,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false', allow: 'GET' },
      body: undefined,
      details: 'ctx_method_not_allowed',
    })
  })

  test('what caused a rejection stays inside', () => {
    const error = new GatewayError('internal_error', { cause: new Error('secret') })
    expect(answerOf(toVerdict({ kind: 'reject', error })).body.toString()).not.toContain('secret')
  })
})
