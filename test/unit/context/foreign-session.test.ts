import { describe, expect, test } from '@jest/globals'
import {
  type ContextGateway,
  createContextGateway,
  gatewayWithSession,
  podA,
  podB,
  promptBody,
  type SentRequest,
} from '../../support/context-gateway.ts'
import { cacheStatusOf, visibleOf } from '../../support/decisions.ts'

describe('the session of another tenant', () => {
  const states: readonly { readonly state: string; readonly end: (gateway: ContextGateway, id: string) => unknown }[] =
    [
      { state: 'live', end: () => undefined },
      { state: 'expired', end: (gateway) => gateway.advance(3600) },
      { state: 'deleted', end: (gateway, id) => gateway.remove(id) },
    ]
  const turn = { path: '/v1/completions', body: promptBody }
  const requests: readonly {
    readonly name: string
    readonly request: SentRequest
    readonly unknownSession?: 'miss' | 'reject'
  }[] = [
    { name: 'a turn', request: turn },
    { name: 'a turn where unknown ones are rejected', request: turn, unknownSession: 'reject' },
    { name: 'a turn with a TTL', request: { path: '/v1/responses', headers: { 'x-session-ttl': '60' } } },
    { name: 'GET', request: { method: 'GET', path: '/v1/context/' } },
    { name: 'PATCH', request: { method: 'PATCH', path: '/v1/context/', body: { ttl: 60 } } },
    { name: 'DELETE', request: { method: 'DELETE', path: '/v1/context/' } },
    { name: 'a list behind it', request: { method: 'GET', path: '/v1/context?limit=5&after=' } },
  ]
  const rows = states.flatMap((state) => requests.map((request) => ({ ...state, ...request })))

  test.each(rows)(
    'looks like one that never existed: $state, $name',
    async ({ end, request, unknownSession = 'miss' }) => {
      const settings = { unknownSession, pods: [podA, podB] }
      const [there, elsewhere] = [createContextGateway(settings), createContextGateway(settings)]
      const { id } = await there.create()
      await end(there, id)
      const addressed = {
        ...request,
        as: 'key-b',
        path: request.path.startsWith('/v1/context') ? `${request.path}${id}` : request.path,
        headers: request.path.startsWith('/v1/context') ? {} : { ...request.headers, 'x-session-id': id },
      }

      const foreign = visibleOf(await there.send(addressed))
      const unknown = visibleOf(await elsewhere.send(addressed))

      expect(foreign).toEqual(unknown)
    },
  )

  const named = { 'x-gateway-model-name': 'm', 'content-length': '9000' }

  test('draws no turns of other tenants to the pod that holds its KV', async () => {
    const { gateway, id, key } = await gatewayWithSession()
    gateway.predictor.kept(key, podA, 2000)
    gateway.pods.turnStarted(podA, 'another')

    expect((await gateway.use(id, { as: 'key-b', headers: named })).destinations).toEqual([podB, podA])
  })

  test('is unchanged by requests of other tenants with its id', async () => {
    const { gateway, id, key } = await gatewayWithSession()
    const before = await gateway.view(id)
    const held = gateway.predictor.residentTokens(key)

    await gateway.serve(await gateway.use(id, { as: 'key-b', headers: { 'x-session-ttl': '60', ...named } }))
    await gateway.send({ as: 'key-b', method: 'PATCH', path: `/v1/context/${id}`, body: { ttl: 10 } })
    await gateway.send({ as: 'key-b', method: 'DELETE', path: `/v1/context/${id}` })

    expect(await gateway.view(id)).toEqual(before)
    expect(gateway.predictor.residentTokens(key)).toEqual(held)
    expect(cacheStatusOf(await gateway.use(id))).toBe('hit; tier=gpu; tokens=1020')
  })
})
