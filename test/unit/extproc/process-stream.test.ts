import { describe, expect, test } from '@jest/globals'
import type {
  Decision,
  GatewayRequest,
  HeadersDecision,
  ResponseObserver,
} from '../../../src/context/context-cache-manager.ts'
import type { Reply } from '../../../src/extproc/codec.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { openStream, requestHeaders } from './stream-harness.ts'

const pass: Decision = { kind: 'passthrough', destinations: [] }
const never = new Promise<never>(() => {})

const passedOn: Reply = { kind: 'decision', phase: 'request_headers', decision: pass, isLast: false }

const errorCode = (reply: Reply | undefined): unknown =>
  reply?.kind === 'decision' && reply.decision.kind === 'reject' ? reply.decision.error.code : undefined

test('the service receives method, path, headers and whether a body follows', async () => {
  const seen: GatewayRequest[] = []
  const stream = openStream(async (request) => {
    seen.push(request)
    return pass
  })
  stream.receiver.message(
    requestHeaders({ ':method': ['POST'], ':path': ['/v1/context?x'], 'x-a': ['1', '2'] }, { endOfStream: true }),
  )
  await stream.nextReply()
  const [request] = seen
  expect(request).toMatchObject({ method: 'POST', path: '/v1/context?x', endOfStream: true })
  expect(request?.header('x-a')).toEqual(['1', '2'])
  expect(stream.sent).toEqual([passedOn])
})

describe('a decision that fails is answered with an error, and reported as a fault', () => {
  const boom = new Error('boom')
  test.each<[string, () => Promise<HeadersDecision>, string]>([
    ['rejects', () => Promise.reject(boom), 'internal_error'],
    [
      'throws at once',
      () => {
        throw boom
      },
      'internal_error',
    ],
    ['rejects with a GatewayError', () => Promise.reject(new GatewayError('no_ready_endpoints')), 'no_ready_endpoints'],
    ['rejects with nothing', () => Promise.reject(undefined), 'internal_error'],
    [
      'fails on the body',
      () => Promise.resolve({ kind: 'need-body', decide: () => Promise.reject(boom) }),
      'internal_error',
    ],
  ])('%s', async (_name, onHeaders, code) => {
    const stream = openStream(onHeaders)
    stream.receiver.message(requestHeaders({}, { endOfStream: true }))
    await stream.nextReply()
    expect(stream.sent.map(errorCode)).toEqual([code])
    expect(stream.faults).toHaveLength(1)
  })
})

test('a response whose body cannot be JSON becomes an internal error, and a fault', () => {
  const stream = openStream(() => never)
  const decision: Decision = { kind: 'response', status: 200, body: 1n, headers: {} }
  const bytes = stream.method.encode({ kind: 'decision', phase: 'request_body', decision })
  expect(bytes.toString()).toContain('"code":"internal_error"')
  expect(stream.faults).toHaveLength(1)
})

test('hooks count streams and time each reply', async () => {
  const stream = openStream(async () => pass)
  stream.receiver.message(requestHeaders())
  await stream.nextReply()
  stream.receiver.message({ kind: 'response_headers', headers: () => [], endOfStream: false })
  expect(stream.streams).toEqual({ opened: 1, closed: 0 })
  stream.receiver.closed()
  expect(stream.streams).toEqual({ opened: 1, closed: 1 })
  expect(stream.messages).toEqual([
    { phase: 'request_headers', milliseconds: 1 },
    { phase: 'response_headers', milliseconds: 1 },
  ])
})

test('an observer that throws is a fault, and observes no more', async () => {
  const failure = new Error('boom')
  const told: unknown[] = []
  const observer: ResponseObserver = {
    setHeaders: {},
    head: () => {
      throw failure
    },
    chunk: () => 'more',
    end: (how) => void told.push(how),
  }
  const stream = openStream(async () => ({ ...pass, observer }))
  stream.receiver.message(requestHeaders({}, { responseBodySent: true }))
  await stream.nextReply()

  stream.receiver.message({ kind: 'response_headers', headers: () => [], endOfStream: false })

  expect(told).toEqual(['broken'])
  expect(stream.faults).toEqual([failure])
  expect(stream.ends).toEqual([])
})
