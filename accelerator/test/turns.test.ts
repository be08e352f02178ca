import { describe, expect, test } from '@jest/globals'
import { extend, forward, only, reply, sentBy, ticksToWait, useFilter } from './filter-fixture.ts'
import { pairsOf } from './header-pairs.ts'

const { start, waiting } = useFilter()

describe('a turn', () => {
  test('is asked with its id and its headers, and waits', () => {
    const { envoy, id } = waiting({ ':method': 'POST', ':path': '/v1/completions', 'x-session-id': 'ctx_é', empty: '' })
    const sent = only(sentBy(envoy))
    if (sent.kind !== 'ask') throw new Error('an ask is expected')
    expect(sent).toMatchObject({ id, request: { method: 'POST', path: '/v1/completions', bodyReadable: false } })
    expect(['x-session-id', 'empty', 'other'].map((name) => sent.request.header(name))).toEqual([['ctx_é'], [''], []])
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('is forwarded with its decision’s headers, and metadata as headers; the access log gets its ticket', () => {
    const { envoy, id, token } = waiting()
    const ctx = { turn: 'a\nticket', headers: 'x-b:c\n' }
    const setHeaders = { ':path': '/other', 'x-a': 'é' }
    envoy.receive(token, reply(forward(id, ctx, { setHeaders, pods: 'a:1,b:2' })))
    expect(envoy.fate(id)).toEqual({
      kind: 'forwarded',
      headers: {
        ':path': '/other',
        'x-a': 'é',
        'x-context-turn-pods': 'a:1,b:2',
        'x-context-turn-begun': '1',
        'x-context-turn-headers': Buffer.from(ctx.headers).toString('base64'),
      },
      body: '',
    })
    expect(envoy.property(id, 'turn')).toBe(ctx.turn)
  })

  test('is answered with status, headers, body and details', () => {
    const { envoy, id, token } = waiting()
    const headers = { 'content-type': 'application/json', 'x-should-retry': 'false' }
    const answer = { status: 404, headers, body: Buffer.from('{"error":{}}'), details: 'ctx_session_not_found' }
    envoy.receive(token, reply({ id, answer: { ...answer, headers: pairsOf(headers) } }))
    expect(envoy.fate(id)).toEqual({ kind: 'answered', ...answer, body: '{"error":{}}' })
  })

  test('without a decision for two seconds is forwarded unchanged, and cancelled', () => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    envoy.tick(ticksToWait - 1)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.tick()
    expect(envoy.fate(id)).toEqual({ kind: 'forwarded', headers: { 'x-a': '1' }, body: '' })
    expect(sentBy(envoy).map(({ kind }) => kind)).toEqual(['ask', 'cancel'])
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.timed_out': 1, 'turns.unasked': 1 })
    envoy.receive(token, reply(forward(id, {}, { pods: 'a:1' })))
    expect(envoy.fate(id)).toMatchObject({ headers: { 'x-a': '1' } })
  })

  test.each([
    { name: 'as long as the gateway asks for', asked: 10_000, waits: 100 },
    { name: 'for thirty seconds at most', asked: 1_000_000, waits: 299 },
  ])('with an extended deadline waits $name', ({ asked, waits }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, reply(extend(id, asked)))
    envoy.tick(waits)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
    envoy.tick(2)
    expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded' })
  })

  test('whose client leaves is cancelled, and a later decision changes nothing', () => {
    const { envoy, id, token } = waiting()
    envoy.delete(id)
    expect(sentBy(envoy)).toMatchObject([
      { kind: 'ask', id },
      { kind: 'cancel', id },
    ])
    envoy.receive(token, reply(forward(id)))
    expect(envoy.fate(id)).toBeUndefined()
  })

  test('whose stream breaks is asked twice more, then forwarded unchanged', () => {
    const { envoy, id } = waiting({ 'x-a': '1' })
    for (let time = 0; time < 3; time++) {
      expect(envoy.fate(id)).toEqual({ kind: 'waits' })
      const { token, kind } = only(sentBy(envoy))
      expect(kind).toBe('ask')
      envoy.end(token)
    }
    expect(envoy.fate(id)).toEqual({ kind: 'forwarded', headers: { 'x-a': '1' }, body: '' })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.repeated': 2, 'turns.unasked': 1 })
  })

  test('is forwarded unchanged when no stream can be opened', () => {
    const envoy = start()
    envoy.canOpen = false
    expect(envoy.fate(envoy.request({ 'x-a': '1' }))).toEqual({ kind: 'forwarded', headers: { 'x-a': '1' }, body: '' })
    expect(Object.fromEntries(envoy.counters)).toEqual({ 'turns.unasked': 1 })
  })

  test('among thousands gets its own decision, twice over', () => {
    const envoy = start()
    for (const round of ['a', 'b']) {
      const ids = Array.from({ length: 9000 }, () => envoy.request({ ':path': '/' }))
      // A reply lets the asks leave that were collected meanwhile.
      for (const { token } of envoy.streams.values()) envoy.receive(token, reply())
      for (const { token, kind, id } of sentBy(envoy))
        if (kind === 'ask') envoy.receive(token, reply(forward(id, {}, { pods: `${round}${id}` })))
      const fates = ids.toReversed().map((id) => {
        const fate = envoy.fate(id)
        envoy.delete(id)
        return fate?.kind === 'forwarded' && fate.headers['x-context-turn-pods'] === `${round}${id}`
      })
      expect(fates.filter((isOwn) => !isOwn)).toEqual([])
    }
  })

  const field = (number: number, ...bytes: number[]): number[] => [(number << 3) | 2, bytes.length, ...bytes]
  test.each([
    { name: 'of no known kind', kind: field(9) },
    { name: 'of no kind', kind: [] },
    { name: 'that is a number in place of a message', kind: [2 << 3, 5] },
    { name: 'that forwards with cut headers', kind: field(2, ...field(1, 1, 0, 0, 0, 3, 0, 0, 0)) },
    { name: 'that forwards with more headers than it has', kind: field(2, ...field(1, 255, 255, 255, 255)) },
    { name: 'that forwards with a cut field', kind: field(2, 0x0a, 9, 1) },
    { name: 'that answers without a status', kind: field(3) },
    { name: 'that answers with a field of no known type', kind: field(3, 0x08, 200, 1, 0x0d) },
  ])('is forwarded unchanged after a decision $name', ({ kind }) => {
    const { envoy, id, token } = waiting({ 'x-a': '1' })
    envoy.receive(token, Buffer.from(field(1, 0x08, (id & 127) | 128, id >> 7, ...kind)))
    expect(envoy.fate(id)).toEqual({ kind: 'forwarded', headers: { 'x-a': '1' }, body: '' })
  })

  test.each([
    { name: 'no decision', bytes: reply() },
    { name: 'a decision that is cut', bytes: Buffer.from([0x0a, 50, 0x08, 1]) },
    { name: 'a decision on another request', bytes: reply(forward(3)) },
    { name: 'a decision on no request', bytes: reply(forward(0)) },
    { name: 'more time for another request', bytes: reply(extend(3, 1000)) },
  ])('waits on after $name', ({ bytes }) => {
    const { envoy, id, token } = waiting()
    envoy.receive(token, bytes)
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('is not decided by its own headers, which an empty reply would leave in memory', () => {
    const { envoy, token } = waiting()
    envoy.receive(token, reply())
    for (let time = 0; time < 3; time++) envoy.request({})
    const decision = reply(forward(1005)).toString('latin1')
    // Ten headers that are fields of TurnsReply, the last one a decision.
    const pad = '\b'.repeat(8)
    const headers = Object.fromEntries(
      Array.from({ length: 9 }, (_, index) => [`${pad.slice(1)}${'\b\u0010\u0018 (08@H'[index]}`, pad]),
    )
    const id = envoy.request({ ...headers, [`${pad.slice(1)}P`]: `\b${decision}\b\b` })
    expect({ id, bytes: decision.length }).toEqual({ id: 1005, bytes: 21 })
    envoy.receive(token, Buffer.alloc(0))
    expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  })

  test('is decided by its own stream only', () => {
    const envoy = start()
    const first = envoy.request({})
    envoy.request({})
    envoy.tick()
    const [one, two] = sentBy(envoy)
    if (one === undefined || two === undefined) throw new Error('two asks are expected')
    expect(one.token).not.toBe(two.token)
    envoy.receive(two.token, reply(forward(first)))
    expect(envoy.fate(first)).toEqual({ kind: 'waits' })
  })
})
