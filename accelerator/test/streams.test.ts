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

/** The streams in the order in which they were opened. */
const tokens = (envoy: SimulatedEnvoy): readonly number[] => [...envoy.streams.keys()]

/** A request waits for its decision, and the ask of another one is collected for the second stream. */
const collecting = () => {
  const first = waiting()
  const collected = first.envoy.request({})
  return { ...first, collected, second: tokens(first.envoy)[1] ?? 0 }
}

describe('streams', () => {
  test('are four, used in turn', () => {
    const envoy = start()
    for (let count = 0; count < 6; count++) {
      requests(envoy, 1)
      for (const token of tokens(envoy)) envoy.receive(token, reply())
    }
    expect(messageCounts(envoy)).toEqual([2, 2, 1, 1])
  })

  test('collect asks until a reply, and send them as one message', () => {
    const { envoy, token } = waiting()
    const later = requests(envoy, 8)
    expect(messageCounts(envoy)).toEqual([1, 0])
    envoy.receive(token, reply())
    expect(messageCounts(envoy)).toEqual([1, 1])
    const second = tokens(envoy)[1] ?? 0
    expect(asksOn(envoy, second)).toEqual(later)
    envoy.receive(second, reply(...later.map((asked) => forward(asked))))
    expect(later.map((asked) => envoy.fate(asked)?.kind)).toEqual(later.map(() => 'forwarded'))
  })

  test('send collected asks without a reply after a tenth of a second', () => {
    const { envoy, collected, second } = collecting()
    envoy.tick()
    expect(asksOn(envoy, second)).toEqual([collected])
  })

  test('send collected asks ahead of a reply when they are too many for one message', () => {
    const envoy = start()
    const ids = Array.from({ length: 7 }, () => envoy.request({ 'x-long': 'x'.repeat(60_000) }))
    expect(messageCounts(envoy)).toEqual([1, 1, 1, 0])
    for (const token of tokens(envoy)) envoy.receive(token, reply())
    expect(sentBy(envoy).map(({ id }) => id)).toEqual(ids)
  })

  test('take no ask that is longer than a message, whose turn is forwarded unchanged', () => {
    const envoy = start()
    const id = envoy.request({ 'x-long': 'x'.repeat(131_072) })
    expect(envoy.fate(id)).toMatchObject({ kind: 'forwarded' })
    expect(sentBy(envoy)).toEqual([])
  })

  test('send a collected ask ahead of its cancel', () => {
    const { envoy, collected } = collecting()
    envoy.delete(collected)
    expect(sentBy(envoy).filter(({ id }) => id === collected)).toMatchObject([{ kind: 'ask' }, { kind: 'cancel' }])
  })

  test.each([
    { name: 'its own stream', index: 1 },
    { name: 'the stream whose reply is awaited', index: 0 },
  ])('that break leave a collected ask to others: $name', ({ index }) => {
    const { envoy, collected } = collecting()
    envoy.end(tokens(envoy)[index] ?? 0)
    expect(sentBy(envoy).filter(({ id }) => id === collected)).toHaveLength(1)
  })

  test('are replaced after thirty seconds, and closed after their last decision', () => {
    const { envoy, id, token } = waiting()
    envoy.tick(10)
    envoy.receive(token, reply(extend(id, 30_000)))
    envoy.tick(280)
    for (let count = 0; count < 4; count++) {
      requests(envoy, 1)
      envoy.tick()
    }
    const old = only(asksOn(envoy, token).filter((asked) => asked !== id))
    envoy.tick(8)
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
    const { envoy, collected, second } = collecting()
    envoy.receive(second, retire)
    requests(envoy, 8)
    expect(asksOn(envoy, second)).toEqual([collected])
    envoy.receive(second, reply(forward(collected)))
    expect(envoy.fate(collected)).toMatchObject({ kind: 'forwarded' })
    expect(envoy.streams.get(second)?.isClosed).toBe(true)
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
