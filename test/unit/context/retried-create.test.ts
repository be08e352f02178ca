import { describe, expect, test } from '@jest/globals'
import type { Decision } from '../../../src/context/context-cache-manager.ts'
import { type ContextGateway, createContextGateway, promptBody } from '../../support/context-gateway.ts'
import { cacheStatusOf, forwarded, rejection } from '../../support/decisions.ts'

const idOf = (decision: Decision): string => forwarded(decision).responseHeaders['x-session-id'] ?? ''

const creator =
  (gateway: ContextGateway, headers: Readonly<Record<string, string>>) =>
  (change: { readonly body?: unknown; readonly as?: string; readonly path?: string } = {}): Promise<Decision> =>
    gateway.send({ path: '/v1/context', body: promptBody, headers, ...change })

describe('a create with an Idempotency-Key', () => {
  test('continues the session of the first create when repeated', async () => {
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

  test('goes to the pod that served the session last when repeated', async () => {
    const gateway = createContextGateway()
    const create = creator(gateway, { 'idempotency-key': 'k' })
    const first = forwarded(await create())
    const [chosen, other = ''] = first.destinations
    await gateway.serve(first, { servedBy: other, promptTokens: 3000 })
    gateway.pods.setReady(chosen, true)

    const second = forwarded(await create())

    expect(second.destinations[0]).toBe(other)
    expect(cacheStatusOf(second)).toMatch(/^hit; tier=gpu/)
  })
})
