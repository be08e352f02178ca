import { expect, test } from '@jest/globals'
import { parentSpanOf, traceOf } from '../../../src/context/request-trace.ts'
import { gatewayWithSession } from '../../support/context-gateway.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
const none = { traceId: undefined, requestId: undefined }

const trace = (headers: Readonly<Record<string, string | readonly string[]>>) =>
  traceOf(gatewayRequest({ path: '/v1/completions', headers }))

test.each([
  ['neither header', {}, none],
  ['a trace', { traceparent }, { ...none, traceId }],
  ['a trace of a later version', { traceparent: `01-${traceId}-00f067aa0ba902b7-01-more` }, { ...none, traceId }],
  ['a request id', { 'x-request-id': '7d9f3f6e-0f0c-4d5b_A.1' }, { ...none, requestId: '7d9f3f6e-0f0c-4d5b_A.1' }],
  ['two traces', { traceparent: [traceparent, traceparent] }, none],
  ['a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` }, none],
  ['a trace of a version that is not allowed', { traceparent: traceparent.replace('00-', 'ff-') }, none],
  ['a trace that is cut off', { traceparent: traceparent.slice(0, -1) }, none],
  ['a trace with more behind it', { traceparent: `${traceparent}x` }, none],
  ['two request ids', { 'x-request-id': ['a', 'b'] }, none],
  ['a request id that is too long', { 'x-request-id': 'a'.repeat(65) }, none],
  ['a request id with other characters', { 'x-request-id': 'Bearer key' }, none],
  ['a session id as request id', { 'x-request-id': `ctx_${'a'.repeat(32)}` }, none],
])('%s', (_name, headers, expected) => {
  expect(trace(headers)).toEqual(expected)
})

test.each([
  [traceparent, true],
  [traceparent.replace(/01$/, '00'), false],
  [`cc-${traceId}-00f067aa0ba902b7-03-more`, true],
])('the span of the caller: %s', (value, isSampled) => {
  const request = gatewayRequest({ path: '/v1/completions', headers: { traceparent: value } })
  expect(parentSpanOf(request)).toEqual({ traceId, spanId: '00f067aa0ba902b7', isSampled })
})

test('a caller without a span, or with two', () => {
  for (const headers of [{}, { traceparent: [traceparent, traceparent] }, { traceparent: traceparent.slice(0, -1) }])
    expect(parentSpanOf(gatewayRequest({ path: '/v1/completions', headers }))).toBeUndefined()
})

test('the line of a turn names its trace and its request, and nothing of other headers', async () => {
  const { gateway, id } = await gatewayWithSession()

  await gateway.serve(await gateway.use(id, { headers: { traceparent, 'x-request-id': 'r1', cookie: 'secret' } }))

  const [, , facts] = gateway.events.of('turnEnded').at(-1) ?? []
  expect(facts).toMatchObject({ traceId, requestId: 'r1' })
  expect(JSON.stringify(facts)).not.toContain('secret')
})
