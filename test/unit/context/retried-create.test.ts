import { describe, expect, test } from '@jest/globals'
import type { Decision } from '../../../src/context/context-cache-manager.ts'
import { type ContextGateway, createContextGateway, promptBody } from '../../support/context-gateway.ts'
import { forwarded, rejection } from '../../support/decisions.ts'

const idOf = (decision: Decision): string => forwarded(decision).responseHeaders['x-session-id'] ?? ''

const creator =
  (gateway: ContextGateway, headers: Readonly<Record<string, string>>) =>
  (change: { readonly body?: unknown; readonly as?: string; readonly path?: string } = {}): Promise<Decision> =>
    gateway.send({ path: '/v1/context', body: promptBody, headers, ...change })

describe('a create with an Idempotency-Key', () => {
  test('that is repeated continues the session of the first', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k' })
    const first = await create()
    await gateway.serve(forwarded(first))

    const second = await create()
    await gateway.serve(forwarded(second))

    expect(idOf(second)).toBe(idOf(first))
    expect(forwarded(second).responseHeaders['x-context-cache']).toBe('hit; tier=gpu; tokens=1020')
    expect(forwarded(second).destinations[0]).toBe(forwarded(first).destinations[0])
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })

  test('that is repeated while the first still runs shares its session', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k' })

    const decisions = await Promise.all([create(), create(), create()])
    for (const decision of decisions) await gateway.serve(forwarded(decision))

    expect(new Set(decisions.map(idOf)).size).toBe(1)
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
    expect(gateway.connector.claims()).toEqual([])
  })

  test.each([
    { name: 'another body', change: { body: { model: 'm', prompt: 'another' } } },
    { name: 'another form of the same text', change: { body: { model: 'm', input: 'Say this is a test' } } },
  ])('is refused for $name', async ({ change }) => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k' })
    await create()

    expect(rejection(await create(change))).toMatchObject({
      code: 'idempotency_key_reused',
      status: 400,
      param: 'Idempotency-Key',
    })
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })

  test('is refused for the same body sent to another API', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k', 'x-session-ttl': '60' })
    const body = { ...promptBody, messages: [{ role: 'user', content: 'hi' }] }
    await create({ path: '/v1/completions', body })

    expect(rejection(await create({ path: '/v1/chat/completions', body })).code).toBe('idempotency_key_reused')
  })

  test('that is repeated goes to the pod that served the session last', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k' })
    const first = forwarded(await create())
    const [chosen, other = ''] = first.destinations
    await gateway.serve(first, { servedBy: other, promptTokens: 3000 })
    gateway.pods.setReady(chosen, true)

    const second = forwarded(await create())

    expect(second.destinations[0]).toBe(other)
    expect(second.responseHeaders['x-context-cache']).toMatch(/^hit; tier=gpu/)
  })

  test('works on an inference path', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k', 'x-session-ttl': '60' })

    const decisions = [await create({ path: '/v1/completions' }), await create({ path: '/v1/completions' })]

    expect(new Set(decisions.map(idOf)).size).toBe(1)
  })
})

describe('a create of an SDK that says which try it is', () => {
  const tryNumber = (gateway: ContextGateway, count: number) =>
    creator(gateway, { 'x-stainless-retry-count': String(count) })

  test('continues the session of its first try', async () => {
    const gateway = createContextGateway()

    const decisions = [await tryNumber(gateway, 0)(), await tryNumber(gateway, 1)(), await tryNumber(gateway, 2)()]

    expect(new Set(decisions.map(idOf)).size).toBe(1)
    expect(await gateway.store.counts()).toMatchObject({ sessions: 1 })
  })

  test('never lands in the session of another conversation that starts alike', async () => {
    const gateway = createContextGateway()
    const firstTries = [await tryNumber(gateway, 0)(), await tryNumber(gateway, 0)()].map(idOf)

    const retries = [await tryNumber(gateway, 1)(), await tryNumber(gateway, 1)()].map(idOf)

    expect(new Set([...firstTries, ...retries]).size).toBe(4)
  })
})
