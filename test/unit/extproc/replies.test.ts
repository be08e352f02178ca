import { describe, expect, test } from '@jest/globals'
import type { Decision, ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { type Outcome, outcomeOf } from '../../../src/extproc/replies.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'

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

const respondOf = (decision: Decision): Extract<Outcome, { kind: 'respond' }> => {
  const outcome = outcomeOf(decision)
  if (outcome.kind !== 'respond') throw new Error(`respond expected, not ${outcome.kind}`)
  return outcome
}

type Changes = Omit<Extract<Outcome, { kind: 'forward' }>, 'kind'>

describe('forward', () => {
  test.each<[string, Partial<ForwardDecision>, Changes]>([
    ['one destination', {}, { setHeaders: {}, destinations: '10.0.0.1:8000', ctx: {} }],
    [
      'everything',
      {
        destinations: ['10.0.0.1:8000', '10.0.0.2:8000'],
        path: '/v1/completions',
        requestHeaders: { 'x-a': 'b' },
        splice: '"cache_salt":"s"',
        expectModel: 'm',
        responseHeaders: { 'x-session-id': 'ctx_1', 'x-context-cache': 'none' },
        ticket: 't',
      },
      {
        setHeaders: { 'x-a': 'b', ':path': '/v1/completions' },
        destinations: '10.0.0.1:8000,10.0.0.2:8000',
        ctx: {
          splice: '"cache_salt":"s"',
          model: 'm',
          turn: 't',
          headers: 'x-session-id:ctx_1\nx-context-cache:none\n',
        },
      },
    ],
    [
      'no framing headers',
      { requestHeaders: { 'content-length': '7', 'transfer-encoding': 'chunked', 'x-a': 'b' } },
      { setHeaders: { 'x-a': 'b' }, destinations: '10.0.0.1:8000', ctx: {} },
    ],
  ])('%s', (_name, part, changes) => {
    expect(outcomeOf({ ...plain, ...part })).toEqual({ kind: 'forward', ...changes })
  })
})

test('a passthrough may set headers', () => {
  const passed = { kind: 'passthrough', destinations: [], requestHeaders: { 'x-a': 'b' } } as const
  expect(outcomeOf(passed)).toEqual({ kind: 'forward', setHeaders: { 'x-a': 'b' }, destinations: undefined, ctx: {} })
})

describe('answers', () => {
  test('are JSON, with their own headers', () => {
    const answer = respondOf({
      kind: 'response',
      status: 200,
      body: { object: 'list' },
      headers: { 'x-a': 'b', 'content-length': '9' },
    })
    expect(answer).toEqual({
      kind: 'respond',
      status: 200,
      headers: { 'content-type': 'application/json', 'x-a': 'b' },
      body: Buffer.from('{"object":"list"}'),
      details: 'ctx_answer',
    })
  })

  test('of the cache have the same bytes', () => {
    const body = Buffer.from([1, 2, 3])
    const headers = { 'x-response-cache': 'hit', 'content-length': '9' }
    expect(respondOf({ kind: 'cached-response', contentType: 'text/event-stream', body, headers })).toEqual({
      kind: 'respond',
      status: 200,
      headers: { 'content-type': 'text/event-stream', 'x-response-cache': 'hit' },
      body,
      details: 'ctx_replay',
    })
  })

  test.each([204, 304])('%i has no body', (status) => {
    expect(respondOf({ kind: 'response', status, body: {}, headers: {} }).body).toHaveLength(0)
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
    expect(() => outcomeOf({ kind: 'response', status: 200, body, headers: {} })).toThrow()
  })

  test('rejections have the shape of OpenAI errors, and details under the fixed prefix', () => {
    const answer = respondOf({
      kind: 'reject',
      error: new GatewayError('method_not_allowed', { param: 'x', headers: { allow: 'GET' } }),
    })
    expect(JSON.parse(answer.body.toString())).toEqual({
      error: {
        message: 'This method is not allowed here.',
        type: 'invalid_request_error',
        param: 'x',
        code: 'method_not_allowed',
      },
    })
    expect({ ...answer, body: undefined }).toEqual({
      kind: 'respond',
      status: 405,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false', allow: 'GET' },
      body: undefined,
      details: 'ctx_method_not_allowed',
    })
  })
})
