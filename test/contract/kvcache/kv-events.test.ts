import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createNoKvEvents } from '../../../src/kvcache/kv-events/create-no-kv-events.ts'
import { createZmqKvEvents } from '../../../src/kvcache/kv-events/create-zmq-kv-events.ts'
import type { KvEventSource } from '../../../src/kvcache/kv-events/kv-event-source.ts'
import type { KvEvents } from '../../../src/kvcache/kv-events/kv-events.ts'
import { eventually } from '../../support/eventually.ts'
import { clearedEvent, removedEvent, storedEvent, tokensFrom, type WireEvent } from '../../support/kv-event-messages.ts'
import {
  encodeBatch,
  type KvEventPublisher,
  type KvEventPublisherOptions,
  startKvEventPublisher,
} from '../../support/kv-event-publisher.ts'

const pod = 'pod:8000'
const never = new AbortController().signal
/** Two blocks of four tokens at a root, then one behind them. */
const first: WireEvent = storedEvent({ hashes: [1, 2], tokens: tokensFrom(10, 8), salt: 's', turnId: 't1' })
const second: WireEvent = storedEvent({ hashes: [3], tokens: tokensFrom(18, 4), parent: 2, turnId: 't2' })
const third: WireEvent = storedEvent({ hashes: [4], tokens: tokensFrom(22, 4), parent: 3, turnId: 't3' })
const all = tokensFrom(10, 16)

let publishers: KvEventPublisher[]
let events: KvEvents | undefined
let pods: readonly string[]
let sources: readonly KvEventSource[] | Error
let warnings: string[]

const publish = async (options?: KvEventPublisherOptions): Promise<KvEventPublisher> => {
  const publisher = await startKvEventPublisher(options)
  publishers.push(publisher)
  sources = [publisher.source]
  return publisher
}

const follow = (): KvEvents => {
  events = createZmqKvEvents({
    pods: () => pods,
    sourcesOf: async () => {
      if (sources instanceof Error) throw sources
      return sources
    },
    log: { debug: () => {}, info: () => {}, warn: (message) => warnings.push(message) },
    pollMs: 5,
    retryMs: 5,
    sourcesCheckMs: 20,
    replaySilenceMs: 10_000,
    tailCheckMs: 50,
  })
  return events
}

/** An engine and a gateway that follows its events. */
const startFollowing = async (options?: KvEventPublisherOptions) => {
  const engine = await publish(options)
  const following = follow()
  await eventually(() => following.isLive(pod))
  return { engine, following }
}

/** The same after the gateway received {@link first}. */
const startInformed = async (options?: KvEventPublisherOptions) => {
  const both = await startFollowing(options)
  await inform(both.engine, both.following)
  return both
}

const inform = async (engine: KvEventPublisher, following: KvEvents): Promise<void> => {
  await engine.publish(first)
  await eventually(() => resident(following) === 8)
}

const resident = (of: KvEvents, salt = 's'): number | undefined =>
  of.residentTokens(pod, { salt, tokens: Uint32Array.from(all) })
const turnTokens = async (of: KvEvents, turnId: string, minTokens: number): Promise<readonly number[]> => [
  ...((await of.turnTokens(pod, { turnId, minTokens }, never)) ?? []),
]

beforeEach(() => {
  publishers = []
  pods = [pod]
  sources = []
  warnings = []
})
afterEach(async () => {
  await events?.stop()
  for (const publisher of publishers) publisher.close()
})

describe('KV events over ZeroMQ', () => {
  test('give the tokens that a pod holds and those of a turn', async () => {
    const { engine, following } = await startFollowing()
    expect(resident(following)).toBe(0)
    const waiting = turnTokens(following, 't2', 12)
    await engine.publish(first)
    await engine.publish(second)
    expect(await waiting).toEqual(tokensFrom(10, 12))
    expect(resident(following)).toBe(12)
    expect(resident(following, 'other')).toBe(0)
    await engine.publish(removedEvent([2]))
    await eventually(() => resident(following) === 4)
    await engine.publish(clearedEvent)
    await eventually(() => resident(following) === 0)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
  })

  test('include what was published before the gateway started', async () => {
    const engine = await publish()
    await engine.publish(first)
    await engine.publish(second, third)
    const following = follow()
    expect(await turnTokens(following, 't3', 16)).toEqual(all)
    await eventually(() => resident(following) === 16)
  })

  test('a gap is filled by a replay', async () => {
    const { engine, following } = await startFollowing()
    await engine.publish(first)
    engine.lose(second)
    await engine.publish(third)
    expect(await turnTokens(following, 't3', 16)).toEqual(all)
    await eventually(() => following.isLive(pod))
    expect(resident(following)).toBe(16)
    expect(warnings).toEqual([])
  })

  test('a lost last batch is found without a later one', async () => {
    const { engine, following } = await startFollowing()
    await engine.publish(first)
    engine.lose(second)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
  })

  test.each<{ readonly name: string; readonly options: KvEventPublisherOptions }>([
    { name: 'no longer has the batch', options: {} },
    { name: 'offers no replay', options: { withoutReplay: true } },
  ])('a gap discards all that was known when the engine $name', async ({ options }) => {
    const { engine, following } = await startInformed(options)
    engine.lose(removedEvent([1]))
    engine.keepLast(0)
    await engine.publish(storedEvent({ hashes: [9], tokens: tokensFrom(10, 4), salt: 'new', turnId: 't9' }))
    expect(await turnTokens(following, 't9', 4)).toEqual(tokensFrom(10, 4))
    await eventually(() => following.isLive(pod))
    expect(resident(following)).toBe(0)
    expect(resident(following, 'new')).toBe(4)
    expect(warnings).toEqual(['KV events were lost: what the engine holds is learnt anew'])
    expect(await following.turnTokens(pod, { turnId: 't1', minTokens: 1 }, AbortSignal.abort())).toBeUndefined()
  })

  test('an engine that restarted holds nothing', async () => {
    const { engine, following } = await startInformed()
    engine.close()
    await eventually(() => !following.isLive(pod))
    expect(resident(following)).toBeUndefined()
    const again = await publish({ inPlaceOf: engine.source })
    await eventually(() => following.isLive(pod))
    expect(resident(following)).toBe(0)
    await again.publish(first)
    await eventually(() => resident(following) === 8)
  })

  test('garbage is logged and does not end the subscription', async () => {
    const { engine, following } = await startInformed()
    await engine.sendRaw([Buffer.from('kv-events')])
    await engine.sendRaw([Buffer.from('kv-events'), Buffer.alloc(3), Buffer.from('x')])
    await engine.sendRaw([Buffer.from('kv-events-of-another'), Buffer.alloc(8), encodeBatch([clearedEvent])])
    await engine.publishPayload(Buffer.from('garbage'))
    await engine.publish(first)
    await eventually(() => warnings.length > 0)
    await eventually(() => resident(following) === 8)
    expect(warnings).toEqual(['KV events were lost: what the engine holds is learnt anew'])
  })

  test('a pod of several ranks holds what all of them hold', async () => {
    const one = await publish()
    const other = await publish()
    sources = [one.source, other.source]
    const following = follow()
    await eventually(() => following.isLive(pod))
    await one.publish(first, second)
    await other.publish(first)
    await eventually(() => resident(following) === 8)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
    other.close()
    await eventually(() => !following.isLive(pod))
    expect(resident(following)).toBeUndefined()
  })

  test('a pod that is no longer configured is forgotten', async () => {
    const { following } = await startInformed()
    const waiting = following.turnTokens(pod, { turnId: 'unheard', minTokens: 1 }, never)
    pods = []
    expect(await waiting).toBeUndefined()
    await eventually(() => resident(following) === undefined)
    expect(following.isLive(pod)).toBe(false)
    pods = [pod]
    await eventually(() => resident(following) === 8)
  })

  test('a pod that moves its endpoint is followed there', async () => {
    const { following } = await startInformed()
    const moved = await publish()
    await moved.publish(first, second)
    await eventually(() => resident(following) === 12)
  })

  test('a pod is asked for its endpoints until it has one', async () => {
    sources = new Error('not up yet')
    const following = follow()
    await eventually(() => warnings.length > 0)
    sources = []
    expect(await following.turnTokens(pod, { turnId: 't1', minTokens: 1 }, never)).toBeUndefined()
    expect(resident(following)).toBeUndefined()
    const engine = await publish()
    await eventually(() => following.isLive(pod))
    await inform(engine, following)
    expect(warnings).toEqual(['where the engine publishes its KV events cannot be learnt'])
  })

  test('an invalid endpoint leaves the pod unknown', async () => {
    sources = [{ endpoint: 'tcp://', replayEndpoint: undefined, topic: '' }]
    const following = follow()
    await eventually(() => warnings.length > 0)
    expect(following.isLive(pod)).toBe(false)
    await publish()
    await eventually(() => following.isLive(pod))
  })

  test('turnTokens of a turn without events waits until its signal', async () => {
    const { following } = await startFollowing()
    const patience = new AbortController()
    const waiting = following.turnTokens(pod, { turnId: 'unheard', minTokens: 1 }, patience.signal)
    patience.abort()
    expect(await waiting).toBeUndefined()
  })

  test('stop resolves pending calls and closes the subscription', async () => {
    const { engine, following } = await startInformed()
    const waiting = following.turnTokens(pod, { turnId: 'unheard', minTokens: 1 }, never)
    await following.stop()
    expect(await waiting).toBeUndefined()
    expect(following.isLive(pod)).toBe(false)
    const heard = engine.replays
    await engine.publish(second)
    expect(engine.replays).toBe(heard)
    await following.stop()
  })
})

test('without events, every answer is unknown, at once', async () => {
  const none = createNoKvEvents()
  expect(resident(none)).toBeUndefined()
  expect(none.isLive(pod)).toBe(false)
  expect(await none.turnTokens(pod, { turnId: 't', minTokens: 1 }, never)).toBeUndefined()
  await none.stop()
})
