import { describe, expect, test } from '@jest/globals'
import { extend, forward, only, reply, retire, sentBy, ticksToWait, useFilter } from './filter-fixture.ts'
import type { SimulatedEnvoy } from './simulated-envoy.ts'

const { start, waiting } = useFilter()

const messageCounts = (envoy: SimulatedEnvoy): readonly number[] =>
  [...envoy.streams.values()].map(({ sent }) => sent.length)

const asksOn = (envoy: SimulatedEnvoy, token: number): readonly number[] =>
  sentBy(envoy)
    .filter((sent) => sent.token === token && sent.kind === 'ask')
    .map(({ id }) => id)

const requests = (envoy: SimulatedEnvoy, count: number): readonly number[] =>
  Array.from({ length: count }, () => envoy.request({}))

describe('streams', () => {
  test('are four, used in turn', () => {
    const envoy = start()
    requests(envoy, 4)
    expect(messageCounts(envoy)).toEqual([1, 1, 1, 1])
  })

  test('collect asks until a reply, and send them as one message', () => {
    const { envoy, id, token } = waiting()
    const later = requests(envoy, 8)
    expect(messageCounts(envoy)).toEqual([1, 1, 1, 1])
    envoy.receive(token, reply())
    expect(envoy.streams.get(token)?.sent).toHaveLength(2)
    expect(asksOn(envoy, token)).toEqual([id, later[3], later[7]])
    envoy.receive(token, reply(...asksOn(envoy, token).map((asked) => forward(asked))))
    expect([id, later[3], later[7]].map((asked) => envoy.fate(asked ?? 0)?.kind)).toEqual(
      Array.from({ length: 3 }, () => 'forwarded'),
    )
  })

  test('send collected asks ahead of a reply when they are too many for one message', () => {
    const envoy = start()
    const ids = Array.from({ length: 12 }, () => envoy.request({ 'x-long': 'x'.repeat(60_000) }))
    expect(messageCounts(envoy)).toEqual([1, 1, 1, 1])
    ids.push(...Array.from({ length: 4 }, () => envoy.request({ 'x-long': 'x'.repeat(60_000) })))
    expect(messageCounts(envoy)).toEqual([2, 2, 2, 2])
    for (const { token } of envoy.streams.values()) envoy.receive(token, reply())
    expect(sentBy(envoy).map(({ id }) => id)).toEqual(expect.arrayContaining(ids))
  })

  test('take no ask that is longer than a message, whose turn is forwarded unchanged', () => {
    const envoy = start()
    const id = envoy.request({ 'x-long': 'x'.repeat(131_072) })
    expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded' })
    expect(sentBy(envoy)).toEqual([])
  })

  test('send a collected ask ahead of its cancel', () => {
    const { envoy } = waiting()
    const collected = requests(envoy, 4).at(-1) ?? 0
    envoy.delete(collected)
    expect(sentBy(envoy).filter(({ id }) => id === collected)).toMatchObject([{ kind: 'ask' }, { kind: 'cancel' }])
  })

  test('that break with collected asks leave them to other streams', () => {
    const { envoy, token } = waiting()
    const collected = requests(envoy, 4).at(-1) ?? 0
    envoy.end(token)
    for (const other of envoy.streams.keys()) envoy.receive(other, reply())
    expect(sentBy(envoy).map(({ id }) => id)).toContain(collected)
  })

  test('are replaced after thirty seconds, and closed after their last decision', () => {
    const { envoy, id, token } = waiting()
    envoy.tick(10)
    envoy.receive(token, reply(extend(id, 30_000)))
    envoy.tick(280)
    const late = requests(envoy, 4)
    const old = only(asksOn(envoy, token).filter((asked) => asked !== id))
    expect(late).toContain(old)
    envoy.tick(12)
    const isClosed = (): unknown => envoy.streams.get(token)?.isClosed
    expect(isClosed()).toBe(false)
    requests(envoy, 8)
    expect(asksOn(envoy, token)).toHaveLength(2)
    envoy.receive(token, reply(forward(old)))
    expect(envoy.fate(old)).toMatchObject({ kind: 'forwarded' })
    expect(isClosed()).toBe(false)
    envoy.receive(token, reply(forward(id)))
    expect(isClosed()).toBe(true)
  })

  test('of a gateway that shuts down get collected asks, no others, and still decide', () => {
    const { envoy, id, token } = waiting()
    const collected = requests(envoy, 4).at(-1) ?? 0
    envoy.receive(token, retire)
    requests(envoy, 8)
    expect(asksOn(envoy, token)).toEqual([id, collected])
    envoy.receive(token, reply(forward(id), forward(collected)))
    expect([id, collected].map((asked) => envoy.fate(asked)?.kind)).toEqual(['forwarded', 'forwarded'])
    expect(envoy.streams.get(token)?.isClosed).toBe(true)
  })

  test.each([
    { name: 'the older of two', goes: 'older', more: 0 },
    { name: 'the newer of two', goes: 'newer', more: 0 },
    { name: 'the newer of twenty', goes: 'newer', more: 18 },
    { name: 'the older of twenty', goes: 'older', more: 18 },
  ])('that end with a removed listener are opened anew: $name', ({ goes, more }) => {
    const { envoy } = waiting()
    for (let time = 0; time < more; time++) envoy.addRoot()
    const newer = envoy.addRoot()
    requests(envoy, 4)
    if (goes === 'newer') envoy.removeRoot([newer])
    else envoy.removeRoot()
    const ids = requests(envoy, 4)
    for (const { token } of envoy.streams.values()) envoy.receive(token, reply())
    expect(sentBy(envoy).filter(({ id }) => ids.includes(id))).toHaveLength(ids.length)
  })
})

test('two listeners do not shorten the time limit of a turn', () => {
  const envoy = start()
  envoy.addRoot()
  const id = envoy.request({})
  envoy.tick(ticksToWait - 1)
  expect(envoy.fate(id)).toEqual({ kind: 'waits' })
  envoy.tick()
  expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded' })
})

test.each([
  { name: 'a name is accepted', cluster: 'gateway of a', isConfigured: true },
  { name: 'no name is refused', cluster: '', isConfigured: false },
  { name: 'a name of more than 120 bytes is refused', cluster: 'g'.repeat(121), isConfigured: false },
])('plugin configuration: $name', ({ cluster, isConfigured }) => {
  expect(start(cluster).isConfigured).toBe(isConfigured)
})

test('a worker holds 32,768 turns; one more is forwarded unchanged', () => {
  const envoy = start()
  requests(envoy, 32_768)
  expect(envoy.waiting()).toHaveLength(32_768)
  expect(envoy.fate(envoy.request({}))).toMatchObject({ kind: 'forwarded' })
  envoy.tick(ticksToWait)
  expect(envoy.waiting()).toEqual([])
})
