import { describe, expect, test } from '@jest/globals'
import { createContextGateway, gatewayWithSession, podA, promptBody } from '../../support/context-gateway.ts'
import { eventually } from '../../support/eventually.ts'
import { watchedScope } from '../../support/gateway-request.ts'

describe('a client that disconnects while its KV is loaded', () => {
  const leaving = async () => {
    const gateway = createContextGateway({ pods: [podA], msPerToken: 1000, maxLoadMs: 60_000 })
    const session = await gateway.create({ headers: { 'x-session-ttl': '60' } })
    gateway.fleet.restart(podA)
    gateway.connector.faults.holdLoads(true)
    const scope = watchedScope()
    const pending = gateway.send({ path: '/v1/completions', headers: { 'x-session-id': session.id } }, scope)
    await eventually(() => gateway.connector.loads() === 1)
    scope.leave()
    return { gateway, ...session, decision: await pending }
  }

  test('gets no decision, adds no turn, and holds neither pod nor session', async () => {
    const { gateway, id, decision } = await leaving()

    expect(decision).toEqual({ kind: 'cancelled' })
    expect(gateway.connector.claims()).toEqual([])
    expect(gateway.pods.running(podA)).toBe(0)
    expect(await gateway.send({ method: 'GET', path: `/v1/context/${id}` })).toMatchObject({ body: { turns: 1 } })

    gateway.connector.faults.holdLoads(false)
    await gateway.sweep(60)

    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
    expect(gateway.fleet.everything()).toEqual([])
  })

  test('does not cancel the load of another turn', async () => {
    const gateway = createContextGateway({ pods: [podA], msPerToken: 1000, maxLoadMs: 60_000 })
    const { id } = await gateway.create()
    gateway.fleet.restart(podA)
    gateway.connector.faults.holdLoads(true)
    const scope = watchedScope()
    const left = gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id } }, scope)
    await eventually(() => gateway.connector.loads() === 1)
    const stays = gateway.use(id)
    await eventually(() => gateway.connector.claims().length === 2)

    scope.leave()
    await left
    gateway.connector.faults.holdLoads(false)

    expect((await stays).responseHeaders['x-context-cache']).toMatch(/^hit; tier=store/)
    expect(gateway.connector.claims()).toHaveLength(1)
  })
})

test('a request that Envoy takes from one gateway to another keeps what it holds there', async () => {
  const { gateway, id } = await gatewayWithSession({ pods: [podA] })
  const headers = { 'x-session-id': id, 'x-context-request-key': 'k1' }
  const scope = watchedScope()
  const other = createContextGateway({ pods: [podA], beside: gateway })
  const forward = await other.use(id, { headers })
  scope.leave()
  await gateway.send({ path: '/v1/completions', headers }, scope)
  await other.serve(forward)

  expect(await gateway.view(id)).toMatchObject({ turns: 2 })
  await other.service.clientDisconnected('k1')
  expect(gateway.connector.claims()).toEqual([])
})

describe('a client that disconnects before its decision', () => {
  test('creates nothing', async () => {
    const gateway = createContextGateway()
    const scope = watchedScope()
    scope.leave()

    const decision = await gateway.send({ path: '/v1/context', body: promptBody }, scope)
    await gateway.sweep()

    expect(decision).toEqual({ kind: 'cancelled' })
    expect(await gateway.store.counts()).toEqual({ sessions: 0, removals: 0 })
    expect(gateway.connector.claims()).toEqual([])
    expect(gateway.events.of('sessionCreated')).toEqual([])
  })

  test.each([
    { name: 'whose session is unknown', storeIsDown: false },
    { name: 'while the store is down', storeIsDown: true },
  ])('is not counted on a pod $name', async ({ storeIsDown }) => {
    const gateway = createContextGateway({ pods: [podA] })
    gateway.store.breakDown(storeIsDown ? 'all' : [])
    const scope = watchedScope()
    scope.leave()

    const decision = await gateway.send(
      { path: '/v1/completions', headers: { 'x-session-id': `ctx_${'a'.repeat(32)}` } },
      scope,
    )

    expect(decision).toEqual({ kind: 'cancelled' })
    expect(gateway.pods.running(podA)).toBe(0)
  })
})
