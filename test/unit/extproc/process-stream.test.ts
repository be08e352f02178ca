import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import type {
  Decision,
  GatewayRequest,
  HeadersDecision,
  ResponseObserver,
} from '../../../src/context/context-cache-manager.ts'
import type { Reply } from '../../../src/extproc/codec.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { createLatch } from '../../support/latch.ts'
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
  expect(stream.sent).toEqual([{ ...passedOn, path: '/v1/context?x' }])
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

describe('a body counts from before Envoy sends it until it is read', () => {
  const needsBody = (decide: () => Promise<Decision>): HeadersDecision => ({ kind: 'need-body', decide })
  const announced = (bytes: string) => requestHeaders(bytes === '' ? {} : { 'content-length': [bytes] })
  const open = async (
    bodyMemory: { readonly maxBytes: number; heldBytes: number },
    { bytes = '800', decide = async (): Promise<Decision> => pass } = {},
  ) => {
    const stream = openStream(async () => needsBody(decide), { bodyMemory })
    stream.receiver.message(announced(bytes))
    await stream.nextReply()
    return stream
  }
  const room = () => ({ maxBytes: 2000, heldBytes: 0 })

  test('one for which there is no room is refused, and does not come', async () => {
    const bodyMemory = room()
    const streams = [await open(bodyMemory), await open(bodyMemory), await open(bodyMemory)]

    expect(streams.map(({ sent: [reply] }) => errorCode(reply))).toEqual([undefined, undefined, 'rate_limit_exceeded'])
    expect(streams.map(({ sent: [reply] }) => reply?.kind)).toEqual(['continue', 'continue', 'decision'])
    expect(bodyMemory.heldBytes).toBe(1600)
  })

  test('one of unknown length counts as the longest that Envoy sends', async () => {
    const bodyMemory = { maxBytes: 20_000_000, heldBytes: 0 }
    const streams = [await open(bodyMemory, { bytes: '' }), await open(bodyMemory, { bytes: '' })]

    expect(streams.map(({ sent: [reply] }) => reply?.kind)).toEqual(['continue', 'decision'])
    expect(bodyMemory.heldBytes).toBe(16 * 1024 * 1024)
  })

  test('it makes room when its stream ends before it has come', async () => {
    const bodyMemory = room()
    const { receiver } = await open(bodyMemory)
    receiver.closed()

    expect(bodyMemory.heldBytes).toBe(0)
  })

  test('it makes room with its decision, also where the client has left before', async () => {
    const bodyMemory = room()
    const decided = createLatch()
    const decide = async (): Promise<Decision> => {
      await decided.opened
      return pass
    }
    const streams = [await open(bodyMemory, { decide }), await open(bodyMemory, { decide })]
    for (const { receiver } of streams)
      receiver.message({ kind: 'request_body', body: Buffer.alloc(700), endOfStream: true })
    streams[1]?.receiver.closed()
    expect(bodyMemory.heldBytes).toBe(1400)

    decided.open()
    await nextTurn()
    expect(bodyMemory.heldBytes).toBe(0)
  })

  test('it makes room as soon as the service does not need it', async () => {
    const bodyMemory = room()
    const decision: HeadersDecision = {
      kind: 'need-body',
      decide: (_body, scope) => {
        scope.releaseBody()
        return never
      },
    }
    const stream = openStream(async () => decision, { bodyMemory })
    stream.receiver.message(announced('800'))
    await stream.nextReply()
    stream.receiver.message({ kind: 'request_body', body: Buffer.alloc(700), endOfStream: true })
    await nextTurn()

    expect(bodyMemory.heldBytes).toBe(0)
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
