import { describe, expect, test } from '@jest/globals'
import { newSessionId } from '../../../src/context/session-id.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import { createContextGateway, gatewayWithSession, podA, promptBody } from '../../support/context-gateway.ts'
import { cacheStatusOf, forwarded, rejection } from '../../support/decisions.ts'

describe('while the session store is unavailable', () => {
  const withSession = async () => {
    const { gateway, id } = await gatewayWithSession()
    gateway.store.breakDown('all')
    return { gateway, id }
  }

  test('a turn is answered as a miss', async () => {
    const { gateway, id } = await withSession()

    const forward = await gateway.use(id)
    await gateway.serve(forward)

    expect(forward).toMatchObject({ splice: undefined, expectModel: undefined })
    expect(forward.responseHeaders).toEqual({ 'x-session-id': id, 'x-context-cache': 'miss; reason=store_unavailable' })
    expect(gateway.events.of('turnEnded').at(-1)?.[0]).toBe('completed')
    expect(gateway.connector.claims()).toEqual([])
  })

  test('a turn is answered with unknownSession reject, too', async () => {
    const gateway = createContextGateway({ unknownSession: 'reject' })
    gateway.store.breakDown('all')

    expect(cacheStatusOf(await gateway.use(newSessionId()))).toBe('miss; reason=store_unavailable')
  })

  test('an inference request that would create a session is answered without one', async () => {
    const { gateway } = await withSession()

    const create = { path: '/v1/completions', body: promptBody, headers: { 'x-session-ttl': '60' } }
    const forward = forwarded(await gateway.send(create))

    expect(forward.responseHeaders).toEqual({ 'x-context-cache': 'none; reason=store_unavailable' })
    expect(forward).toMatchObject({ requestHeaders: {}, splice: undefined, path: undefined })
    expect(gateway.events.of('lookedUp')).toEqual([['store_unavailable']])
  })

  test('an invalid one is still rejected', async () => {
    const { gateway } = await withSession()

    const decision = await gateway.send({ path: '/v1/completions', body: {}, headers: { 'x-session-ttl': '60' } })

    expect(rejection(decision).code).toBe('missing_required_parameter')
  })

  test.each([
    { name: 'POST /v1/context', request: { path: '/v1/context', body: promptBody } },
    { name: 'GET', request: { method: 'GET', path: `/v1/context/${newSessionId()}` } },
    { name: 'the list', request: { method: 'GET', path: '/v1/context' } },
    { name: 'PATCH', request: { method: 'PATCH', path: `/v1/context/${newSessionId()}`, body: { ttl: 60 } } },
    { name: 'DELETE', request: { method: 'DELETE', path: `/v1/context/${newSessionId()}` } },
  ])('$name gets 503 with retry headers and no detail of the store', async ({ request }) => {
    const { gateway } = await withSession()

    const { status, headers, body } = toErrorResponse(rejection(await gateway.send(request)))

    expect({ status, headers }).toEqual({ status: 503, headers: { 'x-should-retry': 'true', 'retry-after': '1' } })
    expect(body).toMatchObject({ error: { code: 'session_store_unavailable', type: 'api_error' } })
    expect(JSON.stringify(body)).not.toMatch(/ECONNREFUSED|6379/)
  })

  test('its faults are reported as store faults', async () => {
    const { gateway, id } = await withSession()

    await gateway.use(id)
    await gateway.send({ path: '/v1/context', body: promptBody })
    await gateway.remove(id)

    expect(gateway.events.of('storeFault').map(([operation]) => operation)).toEqual(['begin', 'create', 'remove'])
    expect(gateway.events.of('fault')).toEqual([])
  })

  test('a rejected turn keeps its error when its lease cannot be released', async () => {
    const { gateway, id } = await gatewayWithSession()
    gateway.store.breakDown(['abandon'])

    const decision = await gateway.send({
      path: '/v1/completions',
      headers: { 'x-session-id': id, 'routing-strategy': 'fastest' },
    })

    expect(rejection(decision).code).toBe('invalid_routing_strategy')
    expect(gateway.events.of('storeFault').map(([operation]) => operation)).toEqual(['abandon'])
  })

  test('a missing artefact is a miss although the drop cannot be recorded', async () => {
    const { gateway, id } = await gatewayWithSession({ pods: [podA] })
    gateway.fleet.restart(podA)
    for (const artefactId of gateway.fleet.artefactIds()) gateway.fleet.unstore(artefactId)
    gateway.store.breakDown(['dropArtefacts'])

    expect(cacheStatusOf(await gateway.use(id))).toBe('miss; reason=kv_missing')
  })
})
