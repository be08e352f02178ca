import { expect, test } from '@jest/globals'
import type { ContextCacheManager, HeadersDecision, RequestScope } from '../../src/context/context-cache-manager.ts'
import type { StreamStatus } from '../../src/extproc/grpc-stream.ts'
import { createHealthState } from '../../src/extproc/health.ts'
import {
  createTurnsCodec,
  type TurnDecision,
  type TurnsReply,
  type TurnsRequest,
  toTurnDecision,
} from '../../src/extproc/turn-messages.ts'
import { createTurnsMethod } from '../../src/extproc/turns-stream.ts'
import { GatewayError } from '../../src/openai/gateway-error.ts'
import { eventually } from '../../test/support/eventually.ts'
import { recordingHooks } from '../../test/unit/extproc/recording-hooks.ts'
import { headersIn, pairsOf } from './header-pairs.ts'

/** One stream of the accelerator, without a network. */
const openStream = (onHeaders: ContextCacheManager['onHeaders']) => {
  const sent: TurnsReply[] = []
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
    send: (reply) => sent.push(reply),
    end: (status) => ends.push(status),
  })
  const decisions = (): readonly TurnDecision[] => sent.flatMap((reply) => reply.decisions)
  return {
    receiver,
    sent,
    ends,
    faults,
    messages,
    turns,
    health,
    decisions,
    decided: (count: number) => eventually(() => decisions().length >= count),
  }
}

const codec = createTurnsCodec()
/** A message as the accelerator writes it, with these asks: an id and headers each. */
const ask = (...asks: readonly (readonly [id: number, headers?: Readonly<Record<string, string>>])[]): TurnsRequest =>
  codec.decode(
    Buffer.concat(
      asks.map(([id, headers = {}]) => {
        const pairs = pairsOf(headers)
        return Buffer.concat([Buffer.from([0x0a, pairs.length + 4, 0x08, id, 0x12, pairs.length]), pairs])
      }),
    ),
  )
const cancel = (...ids: readonly number[]): TurnsRequest => codec.decode(Buffer.from(ids.flatMap((id) => [0x10, id])))

const pass: HeadersDecision = { kind: 'passthrough', destinations: [] }
const passed = (id: number): TurnDecision =>
  toTurnDecision(id, { kind: 'forward', setHeaders: {}, destinations: undefined, ctx: {} })

const answerOf = (decision: TurnDecision | undefined) =>
  decision !== undefined && 'answer' in decision
    ? { status: decision.answer.status, code: JSON.parse(decision.answer.body.toString()).error.code }
    : undefined

test('decisions leave under the ids of their turns, in the order they are taken', async () => {
  const waiting = new Map<string, (decision: HeadersDecision) => void>()
  const stream = openStream(
    (request) => new Promise((resolve) => waiting.set(request.header('x-name')[0] ?? '', resolve)),
  )
  stream.receiver.message(ask([7, { 'x-name': 'a' }], [8, { 'x-name': 'b' }]))
  waiting.get('b')?.(pass)
  await stream.decided(1)
  waiting.get('a')?.({ kind: 'passthrough', destinations: ['10.0.0.1:1'] })
  await stream.decided(2)
  const [first, second] = stream.decisions()
  expect(first).toEqual(passed(8))
  expect(second?.id).toBe(7)
  expect(second !== undefined && 'forward' in second && headersIn(second.forward.headers)).toEqual({
    'x-context-turn-pods': '10.0.0.1:1',
  })
  expect(stream.turns).toEqual({ opened: 2, closed: 2 })
  expect(stream.messages).toEqual([
    { phase: 'request_headers', milliseconds: 1 },
    { phase: 'request_headers', milliseconds: 3 },
  ])
  expect(stream.ends).toEqual([])
})

test('decisions that are taken at once leave in one message', async () => {
  const stream = openStream(async () => pass)
  stream.receiver.message(ask([1], [2]))
  stream.receiver.message(ask([3]))
  await stream.decided(3)
  expect(stream.sent).toEqual([{ decisions: [passed(1), passed(2), passed(3)], retire: false }])
})

test('asks without a decision get an empty reply, and their decisions later', async () => {
  let decide = (_decision: HeadersDecision): void => {}
  const stream = openStream(
    () =>
      new Promise((resolve) => {
        decide = resolve
      }),
  )
  stream.receiver.message(ask([1]))
  await eventually(() => stream.sent.length > 0)
  decide(pass)
  await stream.decided(1)
  expect(stream.sent).toEqual([
    { decisions: [], retire: false },
    { decisions: [passed(1)], retire: false },
  ])
})

test('no body can be asked for', async () => {
  const stream = openStream(async ({ bodyReadable }) =>
    bodyReadable ? pass : { kind: 'reject', error: new GatewayError('invalid_session_id') },
  )
  stream.receiver.message(ask([1]))
  await stream.decided(1)
  expect(answerOf(stream.decisions()[0])).toMatchObject({ code: 'invalid_session_id' })
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
})

test('a turn extends its deadline once, then is decided', async () => {
  const scopes: RequestScope[] = []
  const stream = openStream(async (_request, scope) => {
    scopes.push(scope)
    for (const milliseconds of [Number.NaN, 0, 5000.5, 6000]) scope.extendDeadline(milliseconds)
    return pass
  })
  stream.receiver.message(ask([3]))
  await stream.decided(2)
  scopes[0]?.extendDeadline(7000)
  expect(stream.decisions()).toEqual([{ id: 3, extend_milliseconds: 5000 }, passed(3)])
})

test('a decided turn extends nothing, and is not aborted by the end of its stream', async () => {
  const scopes: RequestScope[] = []
  const stream = openStream(async (_request, scope) => {
    scopes.push(scope)
    return pass
  })
  stream.receiver.message(ask([3]))
  await stream.decided(1)
  scopes[0]?.extendDeadline(5000)
  stream.receiver.closed()
  expect(stream.decisions()).toEqual([passed(3)])
  expect(scopes[0]?.signal.aborted).toBe(false)
})

test.each([
  {
    name: 'throws',
    onHeaders: (): never => {
      throw new Error('broken')
    },
  },
  { name: 'rejects', onHeaders: () => Promise.reject(new Error('broken')) },
  {
    name: 'needs the body',
    onHeaders: async (): Promise<HeadersDecision> => ({ kind: 'need-body', decide: async () => pass }),
  },
  {
    name: 'cannot be encoded',
    onHeaders: async (): Promise<HeadersDecision> => ({ kind: 'response', status: 200, body: 1n, headers: {} }),
  },
])('a decision that $name is a 500 for its turn alone, and a reported fault', async ({ onHeaders }) => {
  const stream = openStream(onHeaders)
  stream.receiver.message(ask([3]))
  await stream.decided(1)
  expect(answerOf(stream.decisions()[0])).toEqual({ status: 500, code: 'internal_error' })
  expect(stream.faults).toHaveLength(1)
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
  expect(stream.ends).toEqual([])
})

test.each([
  { name: 'its cancel', end: 'cancel' },
  { name: 'the close of its stream', end: 'closed' },
  { name: 'the half-close of its stream', end: 'halfClosed' },
] as const)('$name aborts a turn, which gets no decision', async ({ end }) => {
  const scopes: RequestScope[] = []
  const decide: ((decision: HeadersDecision) => void)[] = []
  const stream = openStream((_request, scope) => {
    scopes.push(scope)
    return new Promise((resolve) => decide.push(resolve))
  })
  stream.receiver.message(ask([3]))
  if (end === 'cancel') stream.receiver.message(cancel(3))
  else stream.receiver[end]()
  expect(scopes.map((scope) => scope.signal.aborted)).toEqual([true])
  decide[0]?.(pass)
  await Promise.resolve()
  expect(stream.decisions()).toEqual([])
  expect(stream.turns).toEqual({ opened: 1, closed: 1 })
  expect(stream.ends).toEqual(end === 'halfClosed' ? [{ code: 'ok' }] : [])
})

test('a cancel of an unknown turn is ignored', () => {
  const stream = openStream(async () => pass)
  stream.receiver.message(cancel(9))
  expect(stream.ends).toEqual([])
})

test('two pending turns of one id end the stream', () => {
  const stream = openStream(() => new Promise(() => {}))
  stream.receiver.message(ask([3], [3]))
  expect(stream.ends).toMatchObject([{ code: 'invalid_argument' }])
})

test('a drain retires the stream, which still gets its decisions', async () => {
  const stream = openStream(async () => pass)
  stream.health.setServing(false)
  expect(stream.sent).toEqual([{ decisions: [], retire: true }])
  stream.receiver.message(ask([3]))
  await stream.decided(1)
  expect(stream.decisions()).toEqual([passed(3)])
  stream.receiver.closed()
  stream.health.setServing(true)
  stream.health.setServing(false)
  expect(stream.sent).toHaveLength(2)
})
