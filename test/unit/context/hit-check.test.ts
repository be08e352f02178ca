import { afterEach, describe, expect, jest, test } from '@jest/globals'
import {
  type ContextGateway,
  createContextGateway,
  podA,
  podB,
  type TurnAnswer,
} from '../../support/context-gateway.ts'
import { cacheStatusOf } from '../../support/decisions.ts'

afterEach(() => {
  jest.restoreAllMocks()
})

const untrue = 'miss; reason=engine_reuses_nothing'
/** The prompt contains what the turn before left, of which nothing is reused. */
const nothingReused: TurnAnswer = { promptTokens: 1100, cachedTokens: 0 }
const reused: TurnAnswer = { promptTokens: 1100 }

/** A new session, whose first turn has left 1,020 tokens in its pod. */
const begin = async (gateway: ContextGateway, as = 'key-a', model = 'm') => {
  const { id } = await gateway.create({ as, body: { model, prompt: 'x' } })
  return {
    /** A further turn, and what its header says. `isMoved`: its pod holds nothing any more. */
    take: async (answer: TurnAnswer, { isMoved = false } = {}): Promise<string | undefined> => {
      if (isMoved) for (const pod of [podA, podB]) gateway.fleet.restart(pod)
      const forward = await gateway.use(id, { as })
      await gateway.serve(forward, answer)
      return cacheStatusOf(forward)
    },
  }
}

/** Turns of new sessions, one after the other. */
const takeEach = async (
  gateway: ContextGateway,
  answers: readonly TurnAnswer[],
  { isMoved = false, as = 'key-a' } = {},
): Promise<void> => {
  for (const answer of answers) await (await begin(gateway, as)).take(answer, { isMoved })
}

const changes = (gateway: ContextGateway) => gateway.events.of('reuseChanged').map(([, isReused]) => isReused)
const three = [nothingReused, nothingReused, nothingReused]

describe('hits of which the engine reuses nothing', () => {
  test('are called misses after turns of three sessions, until one is reused', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, three)
    const next = await begin(gateway)

    expect(await next.take(nothingReused)).toBe(untrue)
    expect(await next.take(reused)).toBe(untrue)
    expect(await next.take(reused)).toMatch(/^hit; tier=gpu/)

    const engines = { pool: 'default', model: 'm', source: 'kept' }
    expect(gateway.events.of('reuseChanged')).toEqual([
      [{ ...engines, pod: podA }, false],
      [{ ...engines, pod: podA }, true],
    ])
    expect(gateway.events.of('hitNotReused')).toEqual(Array(4).fill([engines]))
  })

  test('are hits as long as they are turns of one session', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    const session = await begin(gateway)
    for (let turn = 0; turn < 10; turn += 1) expect(await session.take(nothingReused)).toMatch(/^hit/)
  })

  test('do not count together when one between them is reused', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, [nothingReused, nothingReused, reused, nothingReused, nothingReused])
    expect(changes(gateway)).toEqual([])
  })

  test.each<{ name: string; answer: TurnAnswer }>([
    { name: 'does not tell what is reused', answer: { promptTokens: 1100, cachedTokens: 'untold' } },
    { name: 'has no usage', answer: { withoutUsage: true } },
    { name: 'is to a shorter prompt', answer: { promptTokens: 1000, cachedTokens: 0 } },
    { name: 'tells that a part is reused', answer: { promptTokens: 1100, cachedTokens: 300 } },
    { name: 'came from another pod', answer: { ...nothingReused, servedBy: podB } },
    { name: 'was cut', answer: { ...nothingReused, complete: false } },
    { name: 'is an error', answer: { ...nothingReused, status: 500 } },
  ])('do not count where the response $name', async ({ answer }) => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, Array(6).fill(answer))
    expect([changes(gateway), gateway.events.of('hitNotReused')]).toEqual([[], []])
  })

  test('of one tenant change nothing while they are reused for another one', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, [reused], { as: 'key-b' })
    await takeEach(gateway, [...three, ...three])
    expect(changes(gateway)).toEqual([])

    await takeEach(gateway, [nothingReused], { as: 'key-b' })
    expect(changes(gateway)).toEqual([false])
  })

  test('say nothing of another model', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, three)
    expect(await (await begin(gateway, 'key-a', 'n')).take(reused)).toMatch(/^hit/)
  })
})

describe('loads of which the engine reuses nothing', () => {
  test('are made for one turn in fifty, until one is reused', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    await takeEach(gateway, three, { isMoved: true })
    const [loads, next] = [gateway.connector.loads(), await begin(gateway)]
    jest.spyOn(Math, 'random').mockReturnValueOnce(0.02).mockReturnValueOnce(0.99).mockReturnValueOnce(0.019)

    expect(await next.take(nothingReused, { isMoved: true })).toBe(untrue)
    expect(await next.take(nothingReused, { isMoved: true })).toBe(untrue)
    expect(gateway.connector.loads()).toBe(loads)
    expect(await next.take(reused, { isMoved: true })).toBe(untrue)
    expect(gateway.connector.loads()).toBe(loads + 1)
    expect(await next.take(reused, { isMoved: true })).toMatch(/^hit; tier=store/)
    expect(changes(gateway)).toEqual([false, true])
  })

  test('say nothing of KV that stayed in its pod', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    for (let session = 0; session < 3; session += 1) {
      await takeEach(gateway, [reused])
      await takeEach(gateway, [nothingReused], { isMoved: true })
    }
    expect(gateway.events.of('reuseChanged')).toMatchObject([[{ source: 'loaded' }, false]])
    expect(await (await begin(gateway)).take(reused)).toMatch(/^hit; tier=gpu/)
  })
})
