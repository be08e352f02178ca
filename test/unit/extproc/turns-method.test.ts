import { expect, test } from '@jest/globals'
import { createHealthState } from '../../../src/admin/grpc-health-state.ts'
import type { ContextService, DecisionScope, HeadersDecision } from '../../../src/context/context-service.ts'
import { createLeanCodec } from '../../../src/extproc/codec/lean-codec.ts'
import { createProcessMethod } from '../../../src/extproc/process-stream.ts'
import type { RpcStatus } from '../../../src/extproc/transport.ts'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { encodeTurnReply, retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { createTurnsMethod } from '../../../src/extproc/turns/turns-method.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { pairsOf } from '../../support/header-pairs.ts'
import { until } from '../../support/until.ts'

/** One stream of the filter, without a network. */
const openStream = (onHeaders: ContextService['onHeaders']) => {
  const sent: Buffer[] = []
  const ends: RpcStatus[] = []
  const turns = { opened: 0, closed: 0 }
  const health = createHealthState()
  health.setServing(true)
  const exchanges = createProcessMethod({
    service: { onHeaders },
    codec: createLeanCodec(),
    maxBodyBytes: 1000,
    endsFirst: true,
    now: () => 0,
    hooks: {
      streamOpened: () => {
        turns.opened++
      },
      streamClosed: () => {
        turns.closed++
      },
      message: () => {},
      fault: () => {},
    },
  })
  const receiver = createTurnsMethod({ exchanges, health }).open({
    send: (bytes) => sent.push(bytes),
    end: (status) => ends.push(status),
  })
  return { receiver, sent, ends, turns, health, replies: (count: number) => until(() => sent.length >= count) }
}

const askBytes = (id: number, headers: Readonly<Record<string, string>> = {}, isWhole = false): Buffer => {
  const head = Buffer.from([1, 0, 0, 0, 0, isWhole ? 1 : 0])
  head.writeUInt32LE(id, 1)
  return Buffer.concat([head, pairsOf(headers)])
}
const ask = (id: number, headers?: Readonly<Record<string, string>>) => decodeTurnMessage(askBytes(id, headers))
const left = (id: number) => ({ kind: 'left', id }) as const

const pass: HeadersDecision = { kind: 'pass', destinations: [] }
const passed = (id: number): Buffer =>
  encodeTurnReply(id, { kind: 'proceed', phase: 'request-headers', changes: { setHeaders: {}, metadata: {} } })

test('turns are decided by their headers, each under its id, whichever is first', async () => {
  const waiting = new Map<string, (decision: HeadersDecision) => void>()
  const stream = openStream(
    (request) => new Promise((resolve) => waiting.set(request.header('x-name')[0] ?? '', resolve)),
  )
  stream.receiver.message(ask(7, { 'x-name': 'a' }))
  stream.receiver.message(ask(8, { 'x-name': 'b' }))
  waiting.get('b')?.(pass)
  await stream.replies(1)
  waiting.get('a')?.({ kind: 'pass', destinations: ['10.0.0.1:1'] })
  await stream.replies(2)
  expect(stream.sent[0]).toEqual(passed(8))
  expect(stream.sent[1]?.readUInt32LE(1)).toBe(7)
  expect(stream.sent[1]?.toString()).toContain('10.0.0.1:1')
  expect(stream.turns).toEqual({ opened: 2, closed: 2 })
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

test('a turn asks for more time, and is decided then', async () => {
  const stream = openStream(async (_request, scope) => {
    scope.extendDeadline(5000)
    return pass
  })
  stream.receiver.message(ask(3))
  await stream.replies(2)
  expect(stream.sent).toEqual([encodeTurnReply(3, { kind: 'extend', milliseconds: 5000 }), passed(3)])
})

test.each([
  { name: 'a turn that is left', end: 'left' },
  { name: 'a stream that is closed', end: 'closed' },
  { name: 'a stream whose peer says no more', end: 'halfClosed' },
] as const)('$name: what was begun is told, and nothing is answered', async ({ end }) => {
  const scopes: DecisionScope[] = []
  const decide: ((decision: HeadersDecision) => void)[] = []
  const stream = openStream((_request, scope) => {
    scopes.push(scope)
    return new Promise((resolve) => decide.push(resolve))
  })
  stream.receiver.message(ask(3))
  if (end === 'left') stream.receiver.message(left(3))
  else stream.receiver[end]()
  expect(scopes.map((scope) => scope.isAbandoned())).toEqual([true])
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
  expect(stream.ends).toMatchObject([{ code: 'invalid-argument' }])
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
