import { describe, expect, test } from '@jest/globals'
import {
  createContextGateway,
  gatewayWithSession,
  nothingLeft,
  podA,
  podB,
  type TurnAnswer,
} from '../../support/context-gateway.ts'
import { cacheStatusOf, rejection, sessionIdOf, ticketOf, tickets } from '../../support/decisions.ts'
import type { MemoryKvConnector } from '../../support/memory-kv-connector.ts'

describe('a turn that completed', () => {
  test.each([200, 201, 206, 299])('counts with status %i', async (status) => {
    const gateway = createContextGateway()

    const { id } = await gateway.create({}, { status })

    expect(await gateway.view(id)).toMatchObject({ turns: 1 })
  })

  test('counts without tokens when the response has no usage', async () => {
    const gateway = createContextGateway()

    const { id } = await gateway.create({}, { withoutUsage: true })

    expect(await gateway.view(id)).toMatchObject({
      turns: 1,
      tokens: { prompt: 0, output: 0, cached: 0 },
      kv: { stored: { tokens: 1020 } },
    })
  })

  test('stores its KV in place of the earlier artefact', async () => {
    const { gateway, id } = await gatewayWithSession({}, {}, { promptTokens: 500 })
    await gateway.serve(await gateway.use(id), { promptTokens: 700 })
    await gateway.sweep(60)

    expect(gateway.fleet.artefactIds()).toHaveLength(1)
    expect(await gateway.view(id)).toMatchObject({ kv: { stored: { tokens: 720, bytes: 72_000, turn: 2 } } })
  })

  test('records offload_failed when the engine refuses to store', async () => {
    const gateway = createContextGateway()
    gateway.connector.faults.refuse('offload', true)

    const { id } = await gateway.create()

    expect(await gateway.view(id)).toMatchObject({ turns: 1, kv: { stored: null, note: 'offload_failed' } })
    expect(gateway.events.of('offloaded')).toEqual([
      [expect.objectContaining({ kind: 'none', reason: 'offload_failed' }), expect.any(Number), 'default'],
    ])
  })

  test('records not_verified when the pod lost its KV', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA] })
    const forward = await gateway.use(id)

    // The pod starts anew, and the request reaches it without its spliced fields.
    gateway.fleet.restart(podA)
    await gateway.serve({ ...forward, splice: undefined })

    expect(await gateway.view(id)).toMatchObject({ turns: 2, kv: { note: 'not_verified' } })
  })

  test('keeps an earlier artefact when its own could not be stored', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA] }, {}, { promptTokens: 500 })
    gateway.connector.faults.refuse('offload', true)

    await gateway.serve(await gateway.use(id), { promptTokens: 700 })
    gateway.fleet.restart(podA)

    expect(await gateway.view(id)).toMatchObject({ turns: 2, kv: { stored: { tokens: 520, turn: 1 } } })
    expect(cacheStatusOf(await gateway.use(id))).toMatch(/^hit; tier=store; tokens=520; /)
  })

  test('ends in the life of its session that it began', async () => {
    const lives: number[] = []
    const finishing =
      (connector: MemoryKvConnector): MemoryKvConnector['finish'] =>
      async (turn) => {
        lives.push(turn.createdAtMs)
        return connector.finish(turn)
      }
    const wrapConnector = (connector: MemoryKvConnector) => ({ ...connector, finish: finishing(connector) })
    const { gateway, id } = await gatewayWithSession({ wrapConnector }, { headers: { 'x-session-ttl': '60' } })
    const firstMs = gateway.nowMs()
    gateway.advance(60)

    await gateway.serve(await gateway.use(id))
    gateway.advance(1)
    await gateway.serve(await gateway.use(id))

    expect(lives).toEqual([firstMs, firstMs + 60_000, firstMs + 60_000])
  })

  test('stores nothing while another turn of the session runs beside it', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA] })
    const [first, last] = [await gateway.use(id), await gateway.use(id)]

    await gateway.serve(first, { promptTokens: 2000 })
    const between = await gateway.view(id)
    await gateway.serve(last, { promptTokens: 1500 })

    expect(gateway.events.of('offloaded').map(([{ kind }]) => kind)).toEqual(['stored', 'unchanged', 'stored'])
    expect(between).toMatchObject({ turns: 2, kv: { stored: { turn: 1 } } })
    expect(await gateway.view(id)).toMatchObject({ turns: 3, kv: { stored: { tokens: 2020, turn: 3 } } })
  })
})

test.each<{ name: string; first: TurnAnswer; second?: TurnAnswer; learntMs: number }>([
  { name: 'its tokens and its TTFB', first: { promptTokens: 1000, ttfbMs: 3000 }, learntMs: 3000 },
  {
    name: 'only the tokens that were not reused',
    first: { promptTokens: 980 },
    second: { promptTokens: 2000, ttfbMs: 500 },
    learntMs: 500,
  },
  { name: 'nothing without usage', first: { withoutUsage: true, ttfbMs: 3000 }, learntMs: 10_000 },
  { name: 'nothing without a first byte', first: {}, learntMs: 10_000 },
  { name: 'nothing when it failed', first: { status: 500, ttfbMs: 3000 }, learntMs: 10_000 },
])('the cost model learns $name from a turn', async ({ first, second, learntMs }) => {
  const gateway = createContextGateway({ msPerToken: 10 })

  const { id } = await gateway.create({}, first)
  if (second !== undefined) await gateway.serve(await gateway.use(id), second)

  expect(gateway.estimate.recomputeMs('m', 1000)).toBe(learntMs)
})

test('a turn that another pod served makes that pod the last of its session, and no pod unready', async () => {
  const { gateway, id } = await gatewayWithSession()
  const forward = await gateway.use(id)
  const [, other = ''] = forward.destinations

  await gateway.serve(forward, { servedBy: other })

  expect(gateway.pods.pods().every(({ ready }) => ready)).toBe(true)
  expect(gateway.connector.claims()).toEqual([])
  expect([gateway.pods.running(podA), gateway.pods.running(podB)]).toEqual([0, 0])
  expect(await gateway.view(id)).toMatchObject({ turns: 2, kv: { pod: other, stored: { turn: 2 } } })
  expect(cacheStatusOf(await gateway.use(id))).toBe('hit; tier=gpu; tokens=1020')
})

test('a turn of a pool that is gone from the configuration counts, and stores no KV', async () => {
  const { gateway, id } = await gatewayWithSession()
  const forward = await gateway.use(id)

  await gateway.serve({ ...forward, ticket: tickets.encode({ ...ticketOf(forward), pool: 'gone' }) })

  expect(await gateway.view(id)).toMatchObject({ turns: 2, kv: { stored: { turn: 1 } } })
})

// All that is no ticket: test/fuzz/context/turn-ticket.test.ts.
test('an altered ticket ends no turn, and is counted', async () => {
  const { gateway, id } = await gatewayWithSession({ pods: [podA] })
  const forward = await gateway.use(id)
  const ticket = forward.ticket?.replace(podA, podB)

  await gateway.serve({ ...forward, ticket }, { upstreamFailed: true, complete: false })

  expect(gateway.events.of('ticketRefused')).toHaveLength(1)
  expect(gateway.pods.running(podA)).toBe(1)
  expect(gateway.pods.pods().every(({ ready }) => ready)).toBe(true)
  await gateway.serve(forward)
  expect(await gateway.view(id)).toMatchObject({ turns: 2 })
})

test('no KV is asked for at an address that is no pod', async () => {
  const { gateway, id } = await gatewayWithSession()

  await gateway.serve(await gateway.use(id), { servedBy: '203.0.113.9:80' })

  expect(gateway.events.of('offloaded')).toHaveLength(1)
  expect(gateway.connector.claims()).toEqual([])
  expect(await gateway.view(id)).toMatchObject({ turns: 2, kv: { stored: { turn: 1 } } })
})

describe('a turn that failed', () => {
  const left = { complete: false, clientDisconnected: true }
  const failed = { complete: false, upstreamFailed: true }
  const unserved = { servedBy: null, withoutUsage: true }
  const failures: readonly { readonly name: string; readonly answer: TurnAnswer; readonly outcome: string }[] = [
    { name: 'answered 400', answer: { status: 400 }, outcome: 'engine_error' },
    { name: 'answered 500', answer: { status: 500 }, outcome: 'engine_error' },
    { name: 'answered 304', answer: { status: 304 }, outcome: 'engine_error' },
    { name: 'cut off', answer: { complete: false }, outcome: 'incomplete' },
    { name: 'left by its client', answer: left, outcome: 'client_left' },
    {
      name: 'left by its client before any answer',
      answer: { status: 0, ...left, ...unserved },
      outcome: 'client_left',
    },
    { name: 'never reached a pod', answer: { status: 503, ...failed, ...unserved }, outcome: 'upstream_failed' },
    { name: 'reset by its pod', answer: { status: 200, ...failed }, outcome: 'upstream_failed' },
  ]

  test.each(failures)('creates nothing and leaves nothing: $name', async ({ answer, outcome }) => {
    const gateway = createContextGateway()

    const { id } = await gateway.create({}, answer)
    await gateway.sweep()

    expect(rejection(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).code).toBe('session_not_found')
    expect(await gateway.leftovers()).toEqual(nothingLeft)
    expect(gateway.events.of('turnEnded').map(([ended]) => ended)).toEqual([outcome])
  })

  test.each(failures)('changes nothing of a live session, nor its deadline: $name', async ({ answer }) => {
    const { gateway, id } = await gatewayWithSession({ sliding: true })
    const before = await gateway.view(id)
    gateway.advance(600)

    await gateway.serve(await gateway.use(id, { headers: { 'x-session-ttl': '7200' } }), answer)

    expect(await gateway.view(id)).toEqual(before)
    expect(gateway.connector.claims()).toEqual([])
    expect([gateway.pods.running(podA), gateway.pods.running(podB)]).toEqual([0, 0])
  })

  test.each([
    { name: 'upstream failed', answer: { complete: false, upstreamFailed: true }, unready: 1 },
    { name: 'no pod answered', answer: { complete: false, upstreamFailed: true, servedBy: null }, unready: 1 },
    {
      name: 'client left first',
      answer: { complete: false, upstreamFailed: true, clientDisconnected: true },
      unready: 0,
    },
    { name: 'engine refused', answer: { status: 500 }, unready: 0 },
  ])('marks $unready pods unready: $name', async ({ answer, unready }) => {
    const gateway = createContextGateway()

    await gateway.serve(await gateway.beginCreate(), answer)

    expect(gateway.pods.pods().filter(({ ready }) => !ready)).toHaveLength(unready)
  })
})

test('gateways that share a store end each other’s turns and serve each other’s sessions', async () => {
  const gateway = createContextGateway()
  const other = createContextGateway({ beside: gateway })
  const forward = await gateway.beginCreate()
  const id = sessionIdOf(forward)

  await other.serve(forward)

  expect(gateway.connector.claims()).toEqual([])
  expect(await gateway.view(id)).toMatchObject({ turns: 1, kv: { stored: { turn: 1 } } })
  expect(await other.view(id)).toEqual(await gateway.view(id))
  expect(cacheStatusOf(await other.use(id))).toBe('hit; tier=gpu; tokens=1020')
})
