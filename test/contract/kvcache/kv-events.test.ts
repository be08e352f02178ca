import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvEventSource } from '../../../src/kvcache/kv-events/event-sources.ts'
import { createKvEvents, type KvEvents } from '../../../src/kvcache/kv-events/kv-events.ts'
import { createWarnings } from '../../../src/telemetry/warnings.ts'
import { eventually } from '../../support/eventually.ts'
import { clearedEvent, removedEvent, storedEvent, tokensFrom, type WireEvent } from '../../support/kv-event-messages.ts'
import { encodeBatch, type KvEventPublisher, startKvEventPublisher } from '../../support/kv-event-publisher.ts'

const pod = 'pod:8000'
const never = new AbortController().signal
const closedPort: KvEventSource = { endpoint: 'tcp://127.0.0.1:9', topic: '' }
/** Two blocks of four tokens, then one behind them. */
const first: WireEvent = storedEvent({ hashes: [1, 2], tokens: tokensFrom(10, 8), salt: 's', turnId: 't1' })
const second: WireEvent = storedEvent({ hashes: [3], tokens: tokensFrom(18, 4), parent: 2, turnId: 't1' })
const whole: WireEvent = storedEvent({ hashes: [1, 2, 3], tokens: tokensFrom(10, 12), salt: 's', turnId: 't2' })

let publishers: KvEventPublisher[]
let events: KvEvents | undefined
let pods: readonly string[]
let maxTurnMs: number
let sources: readonly KvEventSource[] | Error
let lines: string[]

const publish = async (inPlaceOf?: KvEventSource): Promise<KvEventPublisher> => {
  const publisher = await startKvEventPublisher(inPlaceOf)
  publishers.push(publisher)
  sources = [publisher.source]
  return publisher
}

const follow = (): KvEvents => {
  events = createKvEvents({
    pods: () => pods,
    maxTurnMs,
    sources: async () => {
      if (sources instanceof Error) throw sources
      return sources
    },
    log: { debug: () => {}, info: () => {}, warn: (text) => lines.push(text) },
    warnings: createWarnings({ warn: (text) => lines.push(text), info: (text) => lines.push(text) }),
    pollMs: 5,
    askEveryMs: 5,
  })
  return events
}

const untilFollowed = async (of: KvEvents, ...engines: readonly KvEventPublisher[]): Promise<void> => {
  await eventually(() => of.isLive(pod) && engines.every(({ subscribers }) => subscribers === 1))
}

/** An engine and a gateway that follows its events. */
const startFollowing = async () => {
  const engine = await publish()
  const following = follow()
  await untilFollowed(following, engine)
  return { engine, following }
}

/** The same after the gateway received {@link first}. */
const startInformed = async () => {
  const both = await startFollowing()
  await both.engine.publish(first)
  await eventually(() => both.following.residentTokens(pod, 't1') === 8)
  return both
}

const turnTokens = async (of: KvEvents, turnId: string, minTokens: number): Promise<readonly number[]> => [
  ...((await of.turnTokens(pod, { turnId, minTokens }, never)) ?? []),
]

beforeEach(() => {
  publishers = []
  pods = [pod]
  maxTurnMs = 0
  sources = []
  lines = []
})
afterEach(async () => {
  await events?.stop()
  for (const publisher of publishers) publisher.close()
})

describe('KV events over ZeroMQ', () => {
  test('give the tokens of a turn, and those that the pod holds', async () => {
    const { engine, following } = await startFollowing()
    expect(following.residentTokens(pod, 't1')).toBe(0)
    const waiting = turnTokens(following, 't1', 12)
    await engine.publish(first)
    await engine.publish(second)
    expect(await waiting).toEqual(tokensFrom(10, 12))
    expect(following.residentTokens(pod, 't1')).toBe(12)
    await engine.publish(removedEvent([2]))
    await eventually(() => following.residentTokens(pod, 't1') === 4)
    await engine.publish(clearedEvent)
    await eventually(() => following.residentTokens(pod, 't1') === 0)
    expect(await turnTokens(following, 't1', 12)).toEqual(tokensFrom(10, 12))
  })

  test('a lost batch leaves its turn unknown and nothing resident; the next turn reports all', async () => {
    const { engine, following } = await startInformed()
    const beganAtMs = Date.now()
    expect(following.isLive(pod, beganAtMs)).toBe(true)
    await eventually(() => Date.now() > beganAtMs)
    engine.lose()
    await engine.publish(second)
    await eventually(() => following.residentTokens(pod, 't1') === 0)
    expect([following.isLive(pod), following.isLive(pod, beganAtMs)]).toEqual([true, false])
    await engine.publish(whole)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
    expect(following.residentTokens(pod, 't2')).toBe(12)
  })

  test('an engine that restarted holds nothing until a turn reports it', async () => {
    const { engine, following } = await startInformed()
    engine.close()
    await eventually(() => !following.isLive(pod))
    expect(following.residentTokens(pod, 't1')).toBe(0)
    const again = await publish(engine.source)
    await untilFollowed(following, again)
    await again.publish(first)
    await eventually(() => following.residentTokens(pod, 't1') === 8)
  })

  test('garbage is logged once and does not end the subscription', async () => {
    const { engine, following } = await startInformed()
    await engine.sendRaw([Buffer.from('kv-events')])
    await engine.sendRaw([Buffer.from('kv-events'), Buffer.alloc(3), Buffer.from('x')])
    await engine.sendRaw([Buffer.from('kv-events-of-another'), Buffer.alloc(8), encodeBatch([clearedEvent])])
    await engine.publishPayload(Buffer.from('garbage'))
    await engine.publishPayload(Buffer.from('more of it, and longer'))
    await engine.publish(whole)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
    // A busy machine connects late, which is another warning.
    expect(lines.filter((line) => line.includes('cannot be read'))).toEqual(['KV events of the pod cannot be read'])
  })

  test('a message beyond the limit ends the connection, which is made again', async () => {
    const { engine, following } = await startInformed()
    await engine.publishPayload(new Uint8Array(8 * 1024 * 1024 + 1))
    await eventually(() => following.residentTokens(pod, 't1') === 0)
    await untilFollowed(following, engine)
    await engine.publish(whole)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
  })

  test('of 12 MB of turns 10 MiB are kept, the share of chains in 64 MiB: the oldest turn is unknown', async () => {
    const { engine, following } = await startFollowing()
    for (let turn = 1; turn <= 6; turn += 1) {
      const tokens = Array<number>(500_000).fill(turn)
      await engine.publish(storedEvent({ hashes: [turn], tokens, turnId: `long ${turn}` }))
    }
    expect(await turnTokens(following, 'long 6', 1)).toHaveLength(500_000)
    const oldest = { turnId: 'long 1', minTokens: 1 }
    expect(await following.turnTokens(pod, oldest, AbortSignal.abort())).toBeUndefined()
  })

  test('a pod of several ranks gives the turn of any, and holds what all of them hold', async () => {
    const one = await publish()
    const other = await publish()
    sources = [one.source, other.source]
    const following = follow()
    await untilFollowed(following, one, other)
    await one.publish(whole)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
    expect(following.residentTokens(pod, 't2')).toBe(0)
    await other.publish(storedEvent({ hashes: [1, 2], tokens: tokensFrom(10, 8), salt: 's', turnId: 't2' }))
    await eventually(() => following.residentTokens(pod, 't2') === 8)
    other.close()
    await eventually(() => !following.isLive(pod))
    expect(following.residentTokens(pod, 't2')).toBe(0)
  })

  test('a pod that is no longer configured is forgotten', async () => {
    const { engine, following } = await startInformed()
    const waiting = following.turnTokens(pod, { turnId: 'unheard', minTokens: 1 }, never)
    pods = []
    expect(await waiting).toBeUndefined()
    await eventually(() => engine.subscribers === 0)
    expect([following.isLive(pod), following.residentTokens(pod, 't1')]).toEqual([false, 0])
    pods = [pod]
    await untilFollowed(following, engine)
  })

  test('a pod that has left the list is followed, and not called, while turns may run on it', async () => {
    maxTurnMs = 60_000
    const { engine, following } = await startInformed()
    pods = []
    sources = [closedPort]
    await following.follow('another:8000', never)
    await engine.publish(second)
    expect(await turnTokens(following, 't1', 12)).toEqual(tokensFrom(10, 12))
    expect([following.isLive(pod), engine.subscribers]).toEqual([false, 1])
  })

  test('a pod that moves its endpoint is followed there', async () => {
    const { following } = await startInformed()
    const moved = await publish()
    await untilFollowed(following, moved)
    await moved.publish(whole)
    expect(await turnTokens(following, 't2', 12)).toEqual(tokensFrom(10, 12))
  })

  test.each<{ readonly name: string; readonly given: typeof sources; readonly cause: string }>([
    { name: 'does not answer', given: new Error('not up yet'), cause: 'not up yet' },
    { name: 'names an invalid endpoint', given: [{ endpoint: 'tcp://', topic: '' }], cause: 'Invalid argument' },
    { name: 'publishes nowhere', given: [], cause: 'vLLM publishes none (--kv-events-config)' },
    { name: 'cannot be connected to', given: [closedPort], cause: `${closedPort.endpoint} cannot be reached` },
  ])('a pod that $name is one warning until its events are received', async ({ given, cause }) => {
    sources = given
    const following = follow()
    const asked = following.turnTokens(pod, { turnId: 't1', minTokens: 1 }, AbortSignal.abort())
    expect([await asked, following.isLive(pod)]).toEqual([undefined, false])
    await eventually(() => lines.length > 0)
    await untilFollowed(following, await publish())
    expect(lines).toEqual([expect.stringContaining(cause), `The KV event stream of ${pod} is available again`])
  })

  test('turnTokens resolves with what is known when its signal fires', async () => {
    const { following } = await startInformed()
    const patience = new AbortController()
    const ask = (turnId: string) => following.turnTokens(pod, { turnId, minTokens: 12 }, patience.signal)
    const waiting = Promise.all([ask('t1'), ask('unheard')])
    patience.abort()
    expect(await waiting).toEqual([Uint32Array.from(tokensFrom(10, 8)), undefined])
  })

  test('stop resolves pending calls and closes the subscription', async () => {
    const { engine, following } = await startInformed()
    const waiting = following.turnTokens(pod, { turnId: 'unheard', minTokens: 1 }, never)
    await following.stop()
    expect(await waiting).toBeUndefined()
    await eventually(() => engine.subscribers === 0)
    expect(following.isLive(pod)).toBe(false)
    await following.stop()
  })
})
