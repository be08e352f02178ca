import { describe, expect, test } from '@jest/globals'
import { encodeReply, goOn, only, ticksToWait, told, useFilter } from './filter-bench.ts'

const { start, waiting } = useFilter()

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
    expect(message.request).toMatchObject({ endOfStream: false, bodyMode: 'none' })
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('without a body says so', () => {
    const envoy = start()
    envoy.request({}, { isWhole: true })
    expect(only(told(envoy)).message).toMatchObject({ request: { endOfStream: true } })
  })

  test('goes on with the headers of its verdict, and tells Envoy where, that it is a turn, and what its answer gets', () => {
    const { envoy, id, token } = waiting()
    const changes = {
      setHeaders: { ':path': '/other', 'x-a': 'é' },
      metadata: {
        'envoy.lb': { 'x-gateway-destination-endpoint': 'a:1,b:2' },
        ctx: { turn: 'ticket', headers: 'x-b:c\n' },
      },
    }
    envoy.receive(token, encodeReply(id, { kind: 'proceed', phase: 'request-headers', changes }))
    expect(envoy.fate(id)).toEqual({
      kind: 'went-on',
      headers: { ':path': '/other', 'x-a': 'é', 'x-gateway-destination-endpoint': 'a:1,b:2' },
      properties: { turn: 'ticket' },
      body: '',
    })
  })

  test('is answered with status, headers, body and details', () => {
    const { envoy, id, token } = waiting()
    const answer = {
      status: 404,
      headers: { 'content-type': 'application/json', 'x-should-retry': 'false' },
      body: Buffer.from('{"error":{}}'),
      details: 'ctx_session_not_found',
    }
    envoy.receive(token, encodeReply(id, { kind: 'immediate', answer }))
    expect(envoy.fate(id)).toEqual({ kind: 'answered', ...answer, body: '{"error":{}}' })
  })

  test('whose gateway is silent goes on as it came after two seconds, and the gateway is told', () => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    envoy.tick(ticksToWait - 1)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.tick()
    expect(envoy.fate(id)).toEqual({ kind: 'went-on', headers: { 'x-a': '1' }, properties: {}, body: '' })
    expect(told(envoy).map(({ message }) => message.kind)).toEqual(['ask', 'left'])
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.timed_out': 1, 'turns.unasked': 1 })
    envoy.receive(token, encodeReply(id, goOn))
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', properties: {} })
  })

  test.each([
    { name: 'as long as it asks for', asked: 10_000, waits: 100 },
    { name: 'thirty seconds at the most', asked: 1_000_000, waits: 299 },
  ])('whose gateway asks for more time waits $name', ({ asked, waits }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, encodeReply(id, { kind: 'extend', milliseconds: asked }))
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
    envoy.receive(token, encodeReply(id, goOn))
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
    expect(envoy.fate(id)).toMatchObject({ kind: 'went-on', properties: {} })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.repeated': 2, 'turns.unasked': 1 })
  })

  test('goes on as it came when no stream can be opened', () => {
    const envoy = start()
    envoy.canOpen = false
    expect(envoy.fate(envoy.request({ 'x-a': '1' }))).toMatchObject({ kind: 'went-on', headers: { 'x-a': '1' } })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.unasked': 1 })
  })

  test('is told apart from thousands of others, and what one leaves is free for the next ones', () => {
    const envoy = start()
    const turns = 9000
    for (const round of ['a', 'b']) {
      const ids = Array.from({ length: turns }, () => envoy.request({ ':path': '/' }))
      const tokens = new Map(told(envoy).map(({ token, message }) => [message.id, token] as const))
      for (const id of ids) {
        const ctx = { turn: `t${id}`, headers: `x-session-id:${round}${id}\n` }
        const changes = { setHeaders: {}, metadata: { ctx } }
        envoy.receive(tokens.get(id) ?? 0, encodeReply(id, { kind: 'proceed', phase: 'request-headers', changes }))
      }
      const answers = ids.toReversed().map((id) => {
        const { headers } = envoy.answer(id, { ':status': '200', 'content-type': 'text/event-stream' }, ['data: x\n'])
        envoy.delete(id)
        return headers['x-session-id'] === `${round}${id}`
      })
      expect(answers.filter((isOwn) => !isOwn)).toEqual([])
    }
  })

  test.each([
    { name: 'of no known kind', bytes: [9] },
    { name: 'to go on, cut in its headers', bytes: [1, 1, 0, 3, 0, 0xff, 0xff, 0xff, 0xff, 97] },
    { name: 'to go on, without headers', bytes: [1] },
    { name: 'to go on, without a note', bytes: [1, 0, 0] },
    { name: 'to go on, with a note that is cut', bytes: [1, 0, 0, ...Array.from({ length: 20 }, () => 1), 1, 1, 1, 1] },
    { name: 'to go on, with a note that is longer', bytes: [1, 0, 0, ...Array.from({ length: 20 }, () => 255), 1] },
    { name: 'to answer, cut in its lengths', bytes: [2, 200, 0, 1, 0] },
    { name: 'to answer, longer than it says', bytes: [2, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] },
    { name: 'to answer, of lengths beyond all', bytes: [2, 200, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0] },
  ])('goes on as it came after a verdict $name', ({ bytes: [kind = 0, ...rest] }) => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    const head = Buffer.alloc(5)
    head[0] = kind
    head.writeUInt32LE(id, 1)
    envoy.receive(token, Buffer.concat([head, Buffer.from(rest)]))
    expect(envoy.fate(id)).toEqual({ kind: 'went-on', headers: { 'x-a': '1' }, properties: {}, body: '' })
  })

  test.each([
    { name: 'a message without an id', bytes: [1, 1] },
    { name: 'nothing', bytes: [] },
    { name: 'a verdict on another request', bytes: [1, 1, 0, 0, 0, 0, 0] },
    { name: 'a verdict on no request', bytes: [1, 0, 0, 0, 0, 0, 0] },
    { name: 'more time for another request', bytes: [3, 1, 0, 0, 0, 1, 1, 1, 1] },
  ])('waits on after $name', ({ bytes }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, Buffer.from(bytes))
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('is decided on its own stream alone', () => {
    const envoy = start()
    const first = envoy.request({})
    envoy.request({})
    const [one, two] = told(envoy)
    if (one === undefined || two === undefined) throw new Error('two are expected')
    expect(one.token).not.toBe(two.token)
    envoy.receive(two.token, encodeReply(first, goOn))
    expect(envoy.fate(first)).toEqual({ kind: 'waits' })
  })
})
