import { describe, expect, test } from '@jest/globals'
import type {
  ContextCacheManager,
  HeadersDecision,
  RequestScope,
  ResponseObserver,
} from '../../../src/context/context-cache-manager.ts'
import type { StreamStatus } from '../../../src/extproc/grpc-stream.ts'
import { createHealthState } from '../../../src/extproc/health.ts'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { encodeTurnReply, retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { createTurnsMethod } from '../../../src/extproc/turns/turns-method.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { pairsOf } from '../../support/header-pairs.ts'
import { until } from '../../support/until.ts'
import { recordingHooks } from './recording-hooks.ts'

/** One stream of the filter, without a network. */
const openStream = (onHeaders: ContextCacheManager['onHeaders']) => {
  const sent: Buffer[] = []
  const ends: StreamStatus[] = []
  const health = createHealthState()
  health.setServing(true)
  const { hooks, faults, messages, streams: turns } = recordingHooks()
  let clock = 0
  const receiver = createTurnsMethod({
    service: { onHeaders },
    health,
    now: () => clock++,
    hooks,
  }).open({
    send: (bytes) => sent.push(bytes),
    end: (status) => ends.push(status),
  })
  return {
    receiver,
    sent,
    ends,
    faults,
    messages,
    turns,
    health,
    replies: (count: number) => until(() => sent.length >= count),
  }
}

const askBytes = (id: number, headers: Readonly<Record<string, string>> = {}, isWhole = false): Buffer => {
  const head = Buffer.from([1, 0, 0, 0, 0, isWhole ? 1 : 0])
  head.writeUInt32LE(id, 1)
  return Buffer.concat([head, pairsOf(headers)])
}
const ask = (id: number, headers?: Readonly<Record<string, string>>) => decodeTurnMessage(askBytes(id, headers))
const left = (id: number) => ({ kind: 'left', id }) as const

const pass: HeadersDecision = { kind: 'passthrough', destinations: [] }
const passed = (id: number): Buffer =>
  encodeTurnReply(id, { kind: 'forward', changes: { setHeaders: {}, destinations: undefined, ctx: {} } })

test('turns are decided by their headers, each under its id, whichever is first', async () => {
  const waiting = new Map<string, (decision: HeadersDecision) => void>()
  const stream = openStream(
    (request) => new Promise((resolve) => waiting.set(request.header('x-name')[0] ?? '', resolve)),
  )
  stream.receiver.message(ask(7, { 'x-name': 'a' }))
  stream.receiver.message(ask(8, { 'x-name': 'b' }))
  waiting.get('b')?.(pass)
  await stream.replies(1)
  waiting.get('a')?.({ kind: 'passthrough', destinations: ['10.0.0.1:1'] })
  await stream.replies(2)
  expect(stream.sent[0]).toEqual(passed(8))
  expect(stream.sent[1]?.readUInt32LE(1)).toBe(7)
  expect(stream.sent[1]?.toString()).toContain('10.0.0.1:1')
  expect(stream.turns).toEqual({ opened: 2, closed: 2 })
  expect(stream.messages).toEqual([
    { phase: 'request_headers', milliseconds: 1 },
    { phase: 'request_headers', milliseconds: 3 },
  ])
  expect(stream.ends).toEqual([])
})

test('no body can be asked for', async () => {
  const stream = openStream(async ({ bodyReadable }) =>
    bodyReadable ? pass : { kind: 'reject', error: new GatewayError('invalid_session_id') },
  )
  stream.receiver.message(ask(1))
  await stream.replies(1)
  expect(stream.sent[0]?.[0]).toBe(2)
  expect(stream.sent[0]?.toString()).toContain('"code":"invalid_session_id"')
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
})

test('a turn asks for more time once, and is decided then', async () => {
  const scopes: RequestScope[] = []
  const stream = openStream(async (_request, scope) => {
    scopes.push(scope)
    for (const milliseconds of [Number.NaN, 0, 5000, 6000]) scope.extendDeadline(milliseconds)
    return pass
  })
  stream.receiver.message(ask(3))
  await stream.replies(2)
  scopes[0]?.extendDeadline(7000)
  expect(stream.sent).toEqual([encodeTurnReply(3, { kind: 'extend', milliseconds: 5000 }), passed(3)])
})

test('a decided turn has no time to ask for', async () => {
  const scopes: RequestScope[] = []
  const stream = openStream(async (_request, scope) => {
    scopes.push(scope)
    return pass
  })
  stream.receiver.message(ask(3))
  await stream.replies(1)
  scopes[0]?.extendDeadline(5000)
  stream.receiver.closed()
  expect(stream.sent).toEqual([passed(3)])
  expect(scopes[0]?.signal.aborted).toBe(false)
})

test.each([
  {
    name: 'throws at once',
    onHeaders: (): never => {
      throw new Error('broken')
    },
  },
  { name: 'rejects', onHeaders: () => Promise.reject(new Error('broken')) },
])('a service that $name is a 500 for this turn alone, and told', async ({ onHeaders }) => {
  const stream = openStream(onHeaders)
  stream.receiver.message(ask(3))
  expect(stream.sent).toEqual([])
  await stream.replies(1)
  expect(stream.sent[0]?.readUInt16LE(5)).toBe(500)
  expect(stream.sent[0]?.toString()).toContain('"code":"internal_error"')
  expect(stream.faults).toEqual([new Error('broken')])
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
  expect(stream.ends).toEqual([])
})

describe('a decision that needs the body', () => {
  const wanting = openStream.bind(undefined, async () => ({
    kind: 'need-body',
    decide: async (body) =>
      body.length === 0 ? pass : { kind: 'reject', error: new GatewayError('invalid_session_id') },
  }))

  test('is taken at once where there is none', async () => {
    const stream = wanting()
    stream.receiver.message(decodeTurnMessage(askBytes(3, {}, true)))
    await stream.replies(1)
    expect(stream.sent).toEqual([passed(3)])
    expect(stream.faults).toEqual([])
  })

  test('is a fault where there is one, which the filter keeps to itself', async () => {
    const stream = wanting()
    stream.receiver.message(ask(3))
    await stream.replies(1)
    expect(stream.sent[0]?.readUInt16LE(5)).toBe(500)
    expect(stream.faults).toHaveLength(1)
  })
})

test.each([
  { name: 'a turn goes on', leave: false },
  { name: 'a turn was left', leave: true },
])('who wants to see the answer learns that it is not told when $name', async ({ leave }) => {
  const told: string[] = []
  const observer: ResponseObserver = {
    setHeaders: {},
    head: () => 'more',
    chunk: () => 'more',
    end: (how) => {
      told.push(how)
      throw new Error('broken observer')
    },
  }
  let decide = (_decision: HeadersDecision): void => {}
  const stream = openStream(
    () =>
      new Promise((resolve) => {
        decide = resolve
      }),
  )
  stream.receiver.message(ask(3))
  if (leave) stream.receiver.message(left(3))
  decide({ kind: 'passthrough', destinations: [], observer })
  await until(() => stream.faults.length > 0)
  expect(told).toEqual(['broken'])
  expect(stream.sent).toEqual(leave ? [] : [passed(3)])
})

test.each([
  { name: 'a turn that is left', end: 'left' },
  { name: 'a stream that is closed', end: 'closed' },
  { name: 'a stream whose peer says no more', end: 'halfClosed' },
] as const)('$name: what was begun is told, and nothing is answered', async ({ end }) => {
  const scopes: RequestScope[] = []
  const decide: ((decision: HeadersDecision) => void)[] = []
  const stream = openStream((_request, scope) => {
    scopes.push(scope)
    return new Promise((resolve) => decide.push(resolve))
  })
  stream.receiver.message(ask(3))
  if (end === 'left') stream.receiver.message(left(3))
  else stream.receiver[end]()
  expect(scopes.map((scope) => scope.signal.aborted)).toEqual([true])
  decide[0]?.(pass)
  await Promise.resolve()
  expect(stream.sent).toEqual([])
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
  expect(stream.ends).toEqual(end === 'halfClosed' ? [{ code: 'ok' }] : [])
})

test('a turn that nobody knows may be left', () => {
  const stream = openStream(async () => pass)
  stream.receiver.message(left(9))
  expect(stream.ends).toEqual([])
})

test('two turns of one id end the stream', () => {
  const stream = openStream(() => new Promise(() => {}))
  stream.receiver.message(ask(3))
  stream.receiver.message(ask(3))
  expect(stream.ends).toMatchObject([{ code: 'invalid_argument' }])
})

test('the filter is told to go elsewhere once this process no longer serves', async () => {
  const stream = openStream(async () => pass)
  stream.health.setServing(false)
  expect(stream.sent).toEqual([retireReply])
  stream.receiver.message(ask(3))
  await stream.replies(2)
  expect(stream.sent[1]).toEqual(passed(3))
  stream.receiver.closed()
  stream.health.setServing(true)
  stream.health.setServing(false)
  expect(stream.sent).toHaveLength(2)
})

test.each([
  { name: 'nothing', bytes: [] },
  { name: 'a kind alone', bytes: [2] },
  { name: 'an unknown kind', bytes: [3, 1, 0, 0, 0] },
  { name: 'an ask without headers', bytes: [1, 1, 0, 0, 0, 0] },
  { name: 'fewer lengths than it says', bytes: [1, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
  { name: 'a header that ends behind it', bytes: [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0] },
])('$name is no message', ({ bytes }) => {
  expect(() => decodeTurnMessage(Buffer.from(bytes))).toThrow('not a message of the filter for turns')
})
