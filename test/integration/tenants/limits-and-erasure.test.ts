import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { createLatch } from '../../support/latch.ts'
import { call, type HttpResponse, model } from '../support/client.ts'
import { engineResponse } from '../support/scripted-responses.ts'
import {
  cacheLine,
  create,
  createdId,
  errorOf,
  look,
  storedSession,
  untilStored,
  untilTurns,
  use,
} from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useScriptedStack, useStack } from '../support/use-stack.ts'

const other = { headers: { authorization: 'Bearer other-key' } }

describe('over two gateways', () => {
  const { stack, pod } = useScriptedStack({
    store: 'redis',
    gateways: 2,
    env: { CTX_TENANT_LIMITS_MAX_TURNS: '1', CTX_TENANT_LIMITS_MAX_SESSIONS: '2' },
  })
  const askNamed = (): Promise<HttpResponse> =>
    call(`${stack.url}/v1/chat/completions`, {
      headers: { 'thread-id': 'conversation' },
      body: { model, messages: [{ role: 'user', content: 'hello' }] },
    })

  test('a turn too many is refused with a code, a named one runs without its name, and others go on', async () => {
    const latch = createLatch()
    pod.next(async (request, reply) => {
      await latch.opened
      await engineResponse()(request, reply)
    })
    const first = createdId(stack)
    await eventually(() => expect(pod.requests()).toHaveLength(1))

    const refused = await create(stack)
    expect(refused.status).toBe(429)
    expect(errorOf(refused)).toMatchObject({ code: 'tenant_turn_limit', type: 'rate_limit_error' })
    expect(['x-should-retry', 'retry-after'].map((name) => refused.headers.get(name))).toEqual(['true', '1'])
    const named = await askNamed()
    expect([named.status, named.headers.get('x-session-id'), cacheLine(named)]).toEqual([200, null, null])
    expect((await create(stack, other)).status).toBe(200)

    latch.open()
    const id = await first
    await untilTurns(stack, id, 1)
    expect((await use(stack, id)).status).toBe(200)
    await untilTurns(stack, id, 2)
  })

  test('a session too many is refused with a code, and a named one runs without its name', async () => {
    // The first one is that of the test above.
    await untilTurns(stack, await createdId(stack), 1)
    const refused = await create(stack)
    expect([refused.status, errorOf(refused)]).toMatchObject([429, { code: 'tenant_session_limit' }])
    expect(refused.headers.get('x-should-retry')).toBe('false')
    const named = await askNamed()
    expect([named.status, named.headers.get('x-session-id')]).toEqual([200, null])
  })
})

describe('stored KV', () => {
  const stack = useStack({ store: 'redis', pods: embeddedPods({ count: 1 }) })
  const api = () => `${stack.gateway().adminUrl}/api`

  test('an operator sees what a tenant uses, and erases all of it and nothing else', async () => {
    const id = await storedSession(stack)
    await use(stack, id)
    const { kv } = await untilStored(stack, id, 2)
    const others = await createdId(stack, other)
    const { body } = await call(`${api()}/sessions/${id}`)
    const { tenant } = body as { readonly tenant: string }

    const seen = await call(`${api()}/tenants/${tenant}`)
    expect(seen.body).toMatchObject({ tenant, turns: 2, storedBytes: kv.stored?.bytes, complete: true })

    const erased = await call(`${api()}/tenants/${tenant}`, {
      method: 'DELETE',
      headers: { 'x-requested-with': 'context-cache' },
    })
    expect(erased).toMatchObject({ status: 200, body: { tenant, sessions: expect.any(Number), complete: true } })
    expect((await look(stack, id)).status).toBe(404)
    const { body: left } = await call(`${api()}/tenants/${tenant}`)
    expect(left).toMatchObject({ sessions: 0, storedBytes: 0, turns: 0 })
    expect((await call(`${stack.url}/v1/context/${others}`, other)).status).toBe(200)
    const current = async () => (await call(`${api()}/overview`)).body as { readonly current: unknown }
    await eventually(async () => expect((await current()).current).toMatchObject({ sessions: 1, removalsPending: 0 }))
    const line = stack
      .output()
      .split('\n')
      .find((text) => text.includes('"tenant erased"'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ tenant, cachedAnswers: 0, complete: true })
  })

  test('a limit that comes later counts what is stored, keeps further KV out, and then further sessions', async () => {
    const first = await createdId(stack)
    const { kv } = await untilStored(stack, first, 1)
    await stack.gateway().child.stop()
    const most = Math.floor((kv.stored?.bytes ?? 0) * 1.5)
    await stack.restartGateway(0, { CTX_TENANT_LIMITS_MAX_STORED_BYTES: String(most) })

    const next = await eventually(() => createdId(stack))
    await eventually(async () => expect((await untilTurns(stack, next, 1)).kv.note).toBe('tenant_full'))
    const refused = await create(stack)
    expect([refused.status, errorOf(refused)]).toMatchObject([429, { code: 'tenant_storage_limit' }])
    expect(cacheLine(await use(stack, first))).toMatch(/^hit/)
    expect((await create(stack, other)).status).toBe(200)
  })
})
