import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Reply } from '../../../src/extproc/messages.ts'
import { decodeTurnMessage } from '../../../src/extproc/turns/turn-message.ts'
import { encodeTurnReply, retireReply } from '../../../src/extproc/turns/turn-reply.ts'
import { compileFilter } from '../../support/compiled-filter.ts'
import { SimulatedEnvoy } from '../../support/simulated-envoy.ts'

let module: WebAssembly.Module
beforeAll(async () => {
  module = await compileFilter()
}, 60_000)

const goOn: Reply = { kind: 'proceed', phase: 'request-headers', changes: { setHeaders: {}, metadata: {} } }
const ticksToWait = 20

/** What was sent on every stream, oldest stream first. */
const told = (envoy: SimulatedEnvoy) =>
  [...envoy.streams.values()].flatMap(({ token, sent }) =>
    sent.map((bytes) => ({ token, message: decodeTurnMessage(bytes) })),
  )

const only = <T>(items: readonly T[]): T => {
  const [item] = items
  if (item === undefined || items.length > 1) throw new Error(`one is expected, not ${items.length}`)
  return item
}

/** An Envoy with one request that waits. */
const waiting = (headers: Readonly<Record<string, string>> = { ':path': '/v1/completions' }) => {
  const envoy = new SimulatedEnvoy(module)
  const id = envoy.request(headers)
  const { token } = only(told(envoy))
  return { envoy, id, token }
}

describe('a turn', () => {
  test('is one message with its id and its headers, and waits', () => {
    const { envoy, id } = waiting({ ':method': 'POST', ':path': '/v1/completions', 'x-session-id': 'ctx_é', empty: '' })
    const { message } = only(told(envoy))
    if (message.kind !== 'ask') throw new Error('an ask is expected')
    expect(message.id).toBe(id)
    const names = [':method', ':path', 'x-session-id', 'empty', 'other']
    expect(names.map((name) => message.request.headers(name))).toEqual([
      ['POST'],
      ['/v1/completions'],
      ['ctx_é'],
      [''],
      [],
    ])
    expect(message.request).toMatchObject({ endOfStream: false, bodyMode: 'none', answerMode: 'untold' })
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('without a body says so', () => {
    const envoy = new SimulatedEnvoy(module)
    envoy.request({}, { isWhole: true })
    expect(only(told(envoy)).message).toMatchObject({ request: { endOfStream: true } })
  })

  test('goes on with the headers and the note of its verdict', () => {
    const { envoy, id, token } = waiting()
    const changes = {
      setHeaders: { ':path': '/other', 'x-a': 'é' },
      metadata: {
        'envoy.lb': { 'x-gateway-destination-endpoint': 'a:1,b:2' },
        ctx: { turn: 'ticket', headers: 'x-b:c\n', splice: '"ü":1' },
      },
    }
    envoy.receive(token, encodeTurnReply(id, { kind: 'proceed', phase: 'request-headers', changes }))
    const fate = envoy.fate(id)
    if (fate?.kind !== 'went-on' || fate.note === undefined) throw new Error('it should have gone on with a note')
    expect(fate.headers).toEqual({ ':path': '/other', 'x-a': 'é' })
    const note = Buffer.from(fate.note, 'latin1')
    expect([0, 1, 2, 3, 4].map((index) => note.readUInt32LE(4 * index))).toEqual([7, 6, 6, 0xffff_ffff, 6])
    expect(note.toString('utf8', 20)).toBe('a:1,b:2ticketx-b:c\n"ü":1')
  })

  test('is answered with status, headers, body and details', () => {
    const { envoy, id, token } = waiting()
    const answer = {
      status: 404,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false' },
      body: Buffer.from('{"error":{}}'),
      details: 'ctx_session_not_found',
    }
    envoy.receive(token, encodeTurnReply(id, { kind: 'immediate', answer }))
    expect(envoy.fate(id)).toEqual({ kind: 'answered', ...answer, body: '{"error":{}}' })
  })

  test('whose gateway is silent goes on as it came after two seconds, and the gateway is told', () => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    envoy.tick(ticksToWait - 1)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.tick()
    expect(envoy.fate(id)).toEqual({ kind: 'went-on', headers: { 'x-a': '1' }, note: undefined })
    expect(told(envoy).map(({ message }) => message.kind)).toEqual(['ask', 'left'])
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.timed_out': 1, 'turns.unasked': 1 })
    envoy.receive(token, encodeTurnReply(id, goOn))
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', note: undefined })
  })

  test.each([
    { name: 'as long as it asks for', asked: 10_000, waits: 100 },
    { name: 'thirty seconds at the most', asked: 1_000_000, waits: 299 },
  ])('whose gateway asks for more time waits $name', ({ asked, waits }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, encodeTurnReply(id, { kind: 'extend', milliseconds: asked }))
    envoy.tick(waits)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.tick(2)
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on' })
  })

  test('that its client leaves is told, and a verdict that comes then does nothing', () => {
    const { envoy, id, token } = waiting()
    envoy.delete(id)
    expect(told(envoy).map(({ message }) => message)).toMatchObject([
      { kind: 'ask', id },
      { kind: 'left', id },
    ])
    envoy.receive(token, encodeTurnReply(id, goOn))
    expect(envoy.fate(id)).toBeUndefined()
  })

  test('whose stream breaks is asked for on another one, twice, and goes on then as it came', () => {
    const { envoy, id } = waiting({ 'x-a': '1' })
    for (let time = 0; time < 3; time++) {
      expect(envoy.fate(id)).toEqual({ kind: 'waits' })
      const { token, message } = only(told(envoy))
      expect(message).toMatchObject({ kind: 'ask', id })
      envoy.end(token)
    }
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', note: undefined })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.repeated': 2, 'turns.unasked': 1 })
  })

  test('goes on as it came when no stream can be opened', () => {
    const envoy = new SimulatedEnvoy(module)
    envoy.canOpen = false
    expect(envoy.fate(envoy.request({ 'x-a': '1' }))).toMatchObject({ kind: 'went-on', headers: { 'x-a': '1' } })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.unasked': 1 })
  })

  test.each([
    { name: 'of no known kind', bytes: [9] },
    { name: 'to go on, cut in its headers', bytes: [1, 1, 0, 3, 0, 0xff, 0xff, 0xff, 0xff, 97] },
    { name: 'to go on, without headers', bytes: [1] },
    { name: 'to answer, cut in its lengths', bytes: [2, 200, 0, 1, 0] },
    { name: 'to answer, longer than it says', bytes: [2, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] },
    { name: 'to answer, of lengths beyond all', bytes: [2, 200, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0] },
  ])('goes on as it came after a verdict $name', ({ bytes: [kind = 0, ...rest] }) => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    const head = Buffer.alloc(5)
    head[0] = kind
    head.writeUInt32LE(id, 1)
    envoy.receive(token, Buffer.concat([head, Buffer.from(rest)]))
    expect(envoy.fate(id)).toEqual({ kind: 'went-on', headers: { 'x-a': '1' }, note: undefined })
  })

  test.each([
    { name: 'a message without an id', bytes: [1, 1] },
    { name: 'nothing', bytes: [] },
    { name: 'a verdict on another request', bytes: [1, 1, 0, 0, 0, 0, 0] },
    { name: 'more time for another request', bytes: [3, 1, 0, 0, 0, 1, 1, 1, 1] },
  ])('waits on after $name', ({ bytes }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, Buffer.from(bytes))
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('is decided on its own stream alone', () => {
    const envoy = new SimulatedEnvoy(module)
    const first = envoy.request({})
    envoy.request({})
    const [one, two] = told(envoy)
    if (one === undefined || two === undefined) throw new Error('two are expected')
    expect(one.token).not.toBe(two.token)
    envoy.receive(two.token, encodeTurnReply(first, goOn))
    expect(envoy.fate(first)).toEqual({ kind: 'waits' })
  })
})

describe('streams', () => {
  test('are four, asked in turn', () => {
    const envoy = new SimulatedEnvoy(module)
    for (let time = 0; time < 12; time++) envoy.request({})
    expect([...envoy.streams.values()].map(({ sent }) => sent.length)).toEqual([3, 3, 3, 3])
  })

  test('are replaced after thirty seconds, and closed when all is said on them', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, encodeTurnReply(id, { kind: 'extend', milliseconds: 30_000 }))
    envoy.tick(290)
    const late = [0, 1, 2, 3].map(() => envoy.request({}))
    const old = late.find((one) => envoy.streams.get(token)?.sent.some((bytes) => bytes.readUInt32LE(1) === one))
    if (old === undefined) throw new Error('one should be asked for on the first stream')
    envoy.tick(12)
    const isClosed = (): unknown => envoy.streams.get(token)?.isClosed
    expect(isClosed()).toBe(false)
    for (let time = 0; time < 8; time++) envoy.request({})
    expect(envoy.streams.get(token)?.sent.filter((bytes) => bytes[0] === 1)).toHaveLength(2)
    envoy.receive(token, encodeTurnReply(old, goOn))
    expect(envoy.fate(old)).toMatchObject({ kind: 'went-on' })
    envoy.receive(token, encodeTurnReply(id, goOn))
    expect(isClosed()).toBe(true)
  })

  test('of a gateway that shuts down are asked no more, and what it owes still counts', () => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, retireReply)
    for (let time = 0; time < 8; time++) envoy.request({})
    expect(envoy.streams.get(token)).toMatchObject({ isClosed: false, sent: { length: 1 } })
    envoy.receive(token, encodeTurnReply(id, goOn))
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on' })
    expect(envoy.streams.get(token)?.isClosed).toBe(true)
  })

  test('that went with the filter which had opened them are opened anew', () => {
    const { envoy } = waiting()
    envoy.replaceRoot()
    const ids = [0, 1, 2, 3].map(() => envoy.request({}))
    for (const id of ids) expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    expect(told(envoy)).toHaveLength(4)
  })
})

test.each([
  { name: 'a name', cluster: 'gateway of a', isConfigured: true },
  { name: 'no name', cluster: '', isConfigured: false },
  { name: 'a name that is too long', cluster: 'g'.repeat(121), isConfigured: false },
])('its cluster: $name', ({ cluster, isConfigured }) => {
  expect(new SimulatedEnvoy(module, cluster).isConfigured).toBe(isConfigured)
})

test('half of the table may wait; one more goes on as it came', () => {
  const envoy = new SimulatedEnvoy(module)
  const most = 32_768
  for (let time = 0; time < most; time++) envoy.request({})
  expect(envoy.waiting()).toHaveLength(most)
  expect(envoy.fate(envoy.request({}))).toMatchObject({ kind: 'went-on' })
  envoy.tick(ticksToWait)
  expect(envoy.waiting()).toEqual([])
})
