import { afterEach, describe, expect, jest, test } from '@jest/globals'
import {
  createContextGateway,
  gatewayWithSession,
  nothingLeft,
  podA,
  podB,
  promptBody,
} from '../../support/context-gateway.ts'
import { rejection, sessionIdOf } from '../../support/decisions.ts'
import { eventually } from '../../support/eventually.ts'
import type { MemoryKvConnector } from '../../support/memory-kv-connector.ts'

afterEach(() => {
  jest.useRealTimers()
})

describe('a turn whose session is deleted while it runs', () => {
  test.each([
    { name: 'completes', answer: {} },
    { name: 'fails', answer: { status: 500 } },
  ])('restores nothing when it $name', async ({ answer }) => {
    const { gateway, id } = await gatewayWithSession()
    const forward = await gateway.use(id)
    await gateway.remove(id)

    await gateway.serve(forward, answer)
    await gateway.sweep(60)

    expect(rejection(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).code).toBe('session_not_found')
    expect(await gateway.leftovers()).toEqual(nothingLeft)
    expect(gateway.events.of('offloaded')).toHaveLength(1)
  })

  test('triggers the removal of what it left in the pod', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA], sessionsPerPod: 1, messageTimeoutMs: 0 })
    await gateway.send({ path: '/v1/context', body: promptBody })
    const withoutRoom = await gateway.use(id)
    await gateway.remove(id)
    const before = gateway.events.of('removed').length

    await gateway.serve(withoutRoom)

    await eventually(() => gateway.events.of('removed').length > before)
    expect(gateway.events.of('turnEnded').at(-1)?.[0]).toBe('gone')
  })

  test('leaves nothing when the deletion comes before its offload', async () => {
    const gateway = createContextGateway()
    const forward = await gateway.beginCreate()
    gateway.store.before('commitKv', () => gateway.remove(sessionIdOf(forward)))

    await gateway.serve(forward)
    await gateway.sweep(60)

    expect(await gateway.leftovers()).toEqual(nothingLeft)
  })
})

test('the end of a turn that is reported to another gateway as well replaces no later KV', async () => {
  const { gateway, id } = await gatewayWithSession({ pods: [podA] })
  const ended = gateway.answer(await gateway.use(id))
  if (ended === undefined) throw new Error('The turn has no ticket')
  await gateway.service.endTurn(ended)
  await gateway.serve(await gateway.use(id))
  await gateway.sweep(60)
  const stored = gateway.fleet.artefactIds()

  await createContextGateway({ beside: gateway, pods: [podA] }).service.endTurn(ended)
  await gateway.sweep(60)

  expect(gateway.fleet.artefactIds()).toEqual(stored)
})

test('a stop does not wait for an offload that never settles', async () => {
  jest.useFakeTimers()
  const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
    ...connector,
    finish: () => new Promise(() => {}),
  })
  const gateway = createContextGateway({ wrapConnector })
  const ending = gateway.serve(await gateway.beginCreate())
  const stopped = gateway.drain()
  await jest.advanceTimersByTimeAsync(11_000)
  await Promise.all([ending, stopped])

  expect(gateway.events.of('turnEnded').map(([outcome]) => outcome)).toEqual(['completed'])
})

test('a turn that fails in another pod than the chosen one is released there', async () => {
  const released: string[] = []
  const wrapConnector = (connector: MemoryKvConnector): MemoryKvConnector => ({
    ...connector,
    release: (turn) => {
      released.push(turn.pod)
      return connector.release(turn)
    },
  })
  const gateway = createContextGateway({ wrapConnector })
  const forward = await gateway.beginCreate()
  const servedBy = forward.destinations[0] === podA ? podB : podA
  await gateway.serve(forward, { servedBy, complete: false })

  expect(released).toEqual([servedBy])
})

describe('a turn that ends while the session store is unavailable', () => {
  test.each([
    ['complete', 30],
    ['announce', 1],
    ['commitKv', 1],
  ] as const)('is recorded when %s works again after %d s', async (operation, seconds) => {
    jest.useFakeTimers()
    const gateway = createContextGateway()
    const forward = await gateway.beginCreate()
    gateway.store.breakDown([operation])

    const ending = gateway.serve(forward)
    await jest.advanceTimersByTimeAsync(seconds * 1000)
    gateway.store.breakDown([])
    await jest.advanceTimersByTimeAsync(5000)
    await ending

    expect(await gateway.view(sessionIdOf(forward))).toMatchObject({ turns: 1, kv: { stored: { turn: 1 } } })
  })

  test('is abandoned when abandon works again', async () => {
    const gateway = createContextGateway()
    const forward = await gateway.beginCreate()
    gateway.store.failNext('abandon', 1)

    await gateway.serve(forward, { status: 500 })

    expect(await gateway.store.counts()).toMatchObject({ sessions: 0 })
  })

  test.each([
    { name: 'that completed', answer: {}, outcome: 'completed' },
    { name: 'that failed', answer: { status: 500 }, outcome: 'engine_error' },
  ])(
    '$name releases its pod when the gateway stops and the store stays away, and its session after the lease',
    async ({ answer, outcome }) => {
      jest.useFakeTimers()
      const gateway = createContextGateway()
      const forward = await gateway.beginCreate()
      gateway.store.breakDown('all')

      const ending = gateway.serve(forward, answer)
      const stopped = gateway.drain()
      await jest.advanceTimersByTimeAsync(15_000)
      await Promise.all([ending, stopped])

      expect(gateway.connector.claims()).toEqual([])
      expect([gateway.pods.running(podA), gateway.pods.running(podB)]).toEqual([0, 0])
      expect(gateway.events.of('storeFault').map(([operation]) => operation)).toContain('end_turn')
      expect(gateway.events.of('fault')).toEqual([])
      expect(gateway.events.of('turnEnded').map(([outcome]) => outcome)).toEqual([outcome])

      gateway.store.breakDown([])
      await gateway.sweep(600)

      expect(await gateway.leftovers()).toEqual(nothingLeft)
    },
  )

  test('stores nothing that could not be announced', async () => {
    jest.useFakeTimers()
    const gateway = createContextGateway()
    const forward = await gateway.beginCreate()
    gateway.store.breakDown(['announce'])

    const ending = gateway.serve(forward)
    await jest.advanceTimersByTimeAsync(120_000)
    await ending

    expect(gateway.fleet.artefactIds()).toEqual([])
    const kv = { stored: null, note: 'offload_failed' }
    expect(await gateway.view(sessionIdOf(forward))).toMatchObject({ turns: 1, kv })
  })
})
