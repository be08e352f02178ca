import { describe, expect, test } from '@jest/globals'
import {
  type ContextGateway,
  createContextGateway,
  gatewayWithSession,
  podA,
  podB,
} from '../../support/context-gateway.ts'
import { cacheStatusOf, rejection, sessionIdOf } from '../../support/decisions.ts'
import { watchedScope } from '../../support/gateway-request.ts'

describe('a turn of a session', () => {
  test.each(['/v1/completions', '/v1/chat/completions', '/v1/responses'])(
    'is decided from its headers alone on %s',
    async (path) => {
      const { gateway, id } = await gatewayWithSession()

      const decision = await gateway.send({ path, headers: { 'x-session-id': id }, body: Buffer.from('not read') })

      expect(decision).toMatchObject({ kind: 'forward', path: undefined, requestHeaders: {}, expectModel: 'm' })
    },
  )

  test('is routed to the pod that holds its KV and reports a hit', async () => {
    const { gateway, id, key } = await gatewayWithSession({}, {}, { promptTokens: 2980 })
    const [holder] = gateway.fleet.podsHolding(key)

    const forward = await gateway.use(id)

    expect(forward.destinations[0]).toBe(holder)
    expect(forward.responseHeaders).toEqual({
      'x-session-id': id,
      'x-session-ttl': '3600',
      'x-session-expires-at': '2025-08-01T01:00:00.000Z',
      'x-context-cache': 'hit; tier=gpu; tokens=3000',
    })
    expect(gateway.connector.loads()).toBe(0)
  })

  test('has its KV loaded into a pod that lacks it', async () => {
    const { gateway, id, key } = await gatewayWithSession({}, {}, { promptTokens: 2980 })
    const [holder = ''] = gateway.fleet.podsHolding(key)
    gateway.pods.setReady(holder, false)

    const forward = await gateway.use(id)

    expect(forward.destinations).not.toContain(holder)
    expect(cacheStatusOf(forward)).toMatch(/^hit; tier=store; tokens=3000; load=\d+ms$/)
    expect(gateway.fleet.held(forward.destinations[0], key)).toBe(3000)
  })

  test.each<{ name: string; arrange: (gateway: ContextGateway) => unknown; status: string }>([
    {
      name: 'the engine refuses the load',
      arrange: (gateway) => {
        gateway.fleet.restart(podA)
        gateway.connector.faults.refuse('load', true)
      },
      status: 'miss; reason=load_failed',
    },
    {
      name: 'the load exceeds its budget',
      arrange: (gateway) => {
        gateway.fleet.restart(podA)
        gateway.connector.faults.holdLoads(true)
      },
      status: 'miss; reason=load_timeout',
    },
    {
      name: 'other sessions fill the pod',
      arrange: async (gateway) => {
        for (let session = 1; session <= 4; session += 1) await gateway.beginCreate()
      },
      status: 'miss; reason=no_slot',
    },
  ])('is forwarded as a miss and releases its claim when $name', async ({ arrange, status }) => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA], maxLoadMs: 20, messageTimeoutMs: 0 })
    await arrange(gateway)
    const others = gateway.connector.claims().length

    const forward = await gateway.use(id)
    gateway.connector.faults.holdLoads(false)
    await gateway.serve(forward)

    expect(cacheStatusOf(forward)).toBe(status)
    expect(sessionIdOf(forward)).toBe(id)
    expect(gateway.connector.claims()).toHaveLength(others)
    if (status.endsWith('no_slot')) expect(forward.splice).toBeUndefined()
  })

  test('is a miss with offload_pending while the first turn runs', async () => {
    const gateway = createContextGateway()
    const create = await gateway.beginCreate()

    expect(cacheStatusOf(await gateway.use(sessionIdOf(create)))).toBe('miss; reason=offload_pending')
  })

  test('reports why no KV of the session was stored', async () => {
    const gateway = createContextGateway({ pods: [podA] })
    gateway.connector.faults.refuse('offload', true)
    const { id } = await gateway.create()
    gateway.fleet.restart(podA)

    expect(cacheStatusOf(await gateway.use(id))).toBe('none; reason=offload_failed')
  })

  test('reports lost KV until other KV is stored, and drops it from the session', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA] })
    gateway.fleet.restart(podA)
    for (const artefactId of gateway.fleet.artefactIds()) gateway.fleet.unstore(artefactId)

    const lost = await gateway.use(id)
    const view = await gateway.view(id)

    expect(cacheStatusOf(lost)).toBe('miss; reason=kv_missing')
    expect(view).toMatchObject({ kv: { stored: null, note: 'kv_missing' } })
    expect(cacheStatusOf(await gateway.use(id))).toBe('miss; reason=kv_missing')
  })

  test.each([
    { name: 'of another engine', reason: 'kv_incompatible' },
    { name: 'that the store may list again', reason: 'kv_missing' },
  ] as const)('keeps stored KV $name', async ({ reason }) => {
    const { gateway, id } = await gatewayWithSession({
      wrapConnector: (connector) => ({
        ...connector,
        prepare: async (turn, budget) => ({
          ...(await connector.prepare(turn, budget)),
          ...(turn.stored === undefined ? {} : { presence: { kind: 'miss', reason } }),
        }),
      }),
    })
    const before = await gateway.view(id)

    const turns = [await gateway.use(id), await gateway.use(id)]

    expect(turns.map(cacheStatusOf)).toEqual([`miss; reason=${reason}`, `miss; reason=${reason}`])
    expect(await gateway.view(id)).toEqual(before)
  })

  test.each([
    { name: 'for a long load', promptTokens: 480, isStored: true, extensions: [30_000] },
    { name: 'for a long save that it may have to wait for', promptTokens: 480, isStored: false, extensions: [30_000] },
    { name: 'not for a load of short KV', promptTokens: 30, isStored: true, extensions: [] },
  ])('extends its deadline $name', async ({ promptTokens, isStored, extensions }) => {
    const gateway = createContextGateway({ pods: [podA], msPerToken: 10, maxLoadMs: 8000 })
    gateway.connector.faults.refuse('offload', !isStored)
    const { id } = await gateway.create({}, { promptTokens })
    const scope = watchedScope()

    await gateway.use(id, {}, scope)

    expect(scope.extensions).toEqual(extensions)
  })

  test.each([
    { name: 'compressed', headers: { 'content-encoding': 'gzip' }, code: 'unsupported_media_type' },
    { name: 'a form', headers: { 'content-type': 'Multipart/form-data; boundary=x' }, code: 'unsupported_media_type' },
    { name: 'without credential', headers: { authorization: [] }, code: 'invalid_api_key' },
    { name: 'with a bad TTL', headers: { 'x-session-ttl': '0' }, code: 'invalid_ttl' },
    { name: 'with a TTL out of range', headers: { 'x-session-ttl': '9' }, code: 'ttl_out_of_range' },
    { name: 'by an unknown policy', headers: { 'routing-strategy': 'best' }, code: 'invalid_routing_strategy' },
  ])('is rejected $name, and holds nothing', async ({ headers, code }) => {
    const { gateway, id } = await gatewayWithSession()

    const decision = await gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id, ...headers } })
    await gateway.sweep(3600)

    expect(rejection(decision).code).toBe(code)
    expect(gateway.connector.claims()).toEqual([])
    expect(gateway.fleet.everything()).toEqual([])
  })

  test('is forwarded with any content type', async () => {
    const { gateway, id } = await gatewayWithSession()

    expect(await gateway.use(id, { headers: { 'content-type': 'text/plain' } })).toMatchObject({ kind: 'forward' })
  })

  test('is unavailable while no pod is ready', async () => {
    const { gateway, id } = await gatewayWithSession()
    gateway.pods.setReady(podA, false)
    gateway.pods.setReady(podB, false)

    const decision = await gateway.send({ path: '/v1/completions', headers: { 'x-session-id': id } })

    expect(rejection(decision)).toMatchObject({ code: 'no_ready_endpoints', status: 503 })
  })
})

describe('overlapping turns', () => {
  test('share one load, all hit, and leave one artefact', async () => {
    const { gateway, id, key } = await gatewayWithSession({ pods: [podA] })
    gateway.fleet.restart(podA)

    const forwards = await Promise.all(Array.from({ length: 50 }, () => gateway.use(id)))
    await Promise.all(forwards.map((forward) => gateway.serve(forward)))
    await gateway.sweep(60)

    expect(gateway.connector.loads()).toBe(1)
    expect(forwards.map(cacheStatusOf).filter((line) => !line?.startsWith('hit; '))).toEqual([])
    expect(gateway.connector.claims()).toEqual([])
    expect(gateway.fleet.artefactIds()).toHaveLength(1)
    expect(await gateway.view(id)).toMatchObject({ turns: 51, kv: { pod: podA, stored: { turn: 51 } } })
    expect(gateway.fleet.held(podA, key)).toBe(1020)
  })

  test('keep the session until the last one has ended', async () => {
    const { gateway, id } = await gatewayWithSession({}, { headers: { 'x-session-ttl': '60' } })
    const [slow, fast] = [await gateway.use(id), await gateway.use(id)]
    gateway.advance(61)
    await gateway.serve(fast)
    await gateway.sweep()

    const during = gateway.fleet.artefactIds().length
    await gateway.serve(slow)
    await gateway.sweep(60)

    expect(during).toBeGreaterThan(0)
    expect(gateway.fleet.everything()).toEqual([])
  })
})
