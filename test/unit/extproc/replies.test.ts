import { describe, expect, test } from '@jest/globals'
import type { Decision, ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { decisionMessage } from '../../../src/extproc/replies.ts'
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

type Texts = Readonly<Record<string, string>>

const messageOf = (decision: Decision) => decisionMessage('request_headers', decision)

const setHeaders = (headers: Texts) => ({
  set_headers: Object.entries(headers).map(([key, value]) => ({
    header: { key, raw_value: Buffer.from(value) },
    append_action: 2,
  })),
})

const struct = (texts: Texts) => ({
  structValue: {
    fields: Object.fromEntries(Object.entries(texts).map(([key, stringValue]) => [key, { stringValue }])),
  },
})

const destinations = (pods: string) => ({ 'envoy.lb': struct({ 'x-gateway-destination-endpoint': pods }) })

interface Answer {
  readonly status: number
  readonly headers: Texts
  readonly body: Buffer
  readonly details: string
}

const answer = ({ status, headers, ...rest }: Answer) => ({
  immediate_response: { status: { code: status }, headers: setHeaders(headers), ...rest },
})

describe('forward', () => {
  test.each<[string, Partial<ForwardDecision>, Texts, object]>([
    ['one destination', {}, {}, destinations('10.0.0.1:8000')],
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
      { 'x-a': 'b', ':path': '/v1/completions' },
      {
        ...destinations('10.0.0.1:8000,10.0.0.2:8000'),
        ctx: struct({
          splice: '"cache_salt":"s"',
          model: 'm',
          turn: 't',
          headers: 'x-session-id:ctx_1\nx-context-cache:none\n',
        }),
      },
    ],
    [
      'no framing headers',
      { requestHeaders: { 'content-length': '7', 'transfer-encoding': 'chunked', 'x-a': 'b' } },
      { 'x-a': 'b' },
      destinations('10.0.0.1:8000'),
    ],
  ])('%s', (_name, part, headers, fields) => {
    const mutation = { header_mutation: { ...setHeaders(headers), remove_headers: [] } }
    expect(messageOf({ ...plain, ...part })).toEqual({
      request_headers: { response: Object.keys(headers).length === 0 ? {} : mutation },
      dynamic_metadata: { fields },
    })
  })
})

test('a passthrough may set headers', () => {
  const passed = { kind: 'passthrough', destinations: [], requestHeaders: { 'x-a': 'b' } } as const
  expect(messageOf(passed)).toEqual({
    request_headers: { response: { header_mutation: { ...setHeaders({ 'x-a': 'b' }), remove_headers: [] } } },
  })
})

describe('answers', () => {
  test('are JSON, with their own headers', () => {
    const headers = { 'x-a': 'b', 'content-length': '9' }
    expect(messageOf({ kind: 'response', status: 200, body: { object: 'list' }, headers })).toEqual(
      answer({
        status: 200,
        headers: { 'content-type': 'application/json', 'x-a': 'b' },
        body: Buffer.from('{"object":"list"}'),
        details: 'ctx_answer',
      }),
    )
  })

  test('of the cache have the same bytes', () => {
    const body = Buffer.from([1, 2, 3])
    const headers = { 'x-response-cache': 'hit', 'content-length': '9' }
    expect(messageOf({ kind: 'cached-response', contentType: 'text/event-stream', body, headers })).toEqual(
      answer({
        status: 200,
        headers: { 'content-type': 'text/event-stream', 'x-response-cache': 'hit' },
        body,
        details: 'ctx_replay',
      }),
    )
  })

  test.each([204, 304])('%i has no body', (status) => {
    expect(messageOf({ kind: 'response', status, body: {}, headers: {} })).toMatchObject({
      immediate_response: { status: { code: status }, body: Buffer.alloc(0) },
    })
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
    expect(() => messageOf({ kind: 'response', status: 200, body, headers: {} })).toThrow()
  })

  test('rejections have the shape of OpenAI errors, and details under the fixed prefix', () => {
    const error = new GatewayError('method_not_allowed', { param: 'x', headers: { allow: 'GET' } })
    const body = {
      error: {
        message: 'This method is not allowed here.',
        type: 'invalid_request_error',
        param: 'x',
        code: 'method_not_allowed',
      },
    }
    expect(messageOf({ kind: 'reject', error })).toEqual(
      answer({
        status: 405,
        headers: { 'content-type': 'application/json', 'x-should-retry': 'false', allow: 'GET' },
        body: Buffer.from(JSON.stringify(body)),
        details: 'ctx_method_not_allowed',
      }),
    )
  })
})
