import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { metric } from '../support/metrics.ts'
import {
  cacheLine,
  create,
  errorOf,
  look,
  prompt,
  remove,
  storedSession,
  unknownId,
  use,
  view,
} from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const stack = useStack({
  store: 'redis',
  redis: { appendOnly: true },
  pods: embeddedPods({ count: 1 }),
  env: { CTX_SESSIONS_COMMAND_TIMEOUT_MS: '1000' },
})
const body = { model, prompt: prompt(15), max_tokens: 2 }
const chat = { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 2, stream: true }
const degraded = () => metric(stack, 'degraded_total', { reason: 'store_unavailable' })

// A full Redis, and a replica: test/contract/sessions/redis-faults and test/unit/context/store-unavailable.
describe.each([
  {
    fault: 'stopped',
    begin: async () => stack.redis?.child.kill(),
    end: () => stack.restartRedis(),
    // Refusals cost no time: only silence opens the circuit.
    circuit: 0,
  },
  {
    fault: 'frozen',
    begin: async () => stack.redis?.child.pause(),
    end: async () => stack.redis?.child.resume(),
    circuit: 1,
  },
])('Redis $fault', ({ begin, end, circuit }) => {
  test('turns are answered in full, requests about sessions are refused, and all is there with it again', async () => {
    // The circuit breaker may still be open after the fault before.
    const id = await storedSession(stack, { body, headers: { 'x-session-ttl': '1000' } })
    const before = await degraded()
    await begin()

    const turns = [
      await use(stack, id, { body }),
      await use(stack, id, { path: '/v1/chat/completions', body: chat }),
      await create(stack, { path: '/v1/completions', body, headers: { 'x-session-ttl': '60' } }),
    ]
    const refused = [
      await create(stack, { body }),
      await look(stack, id),
      await call(`${stack.url}/v1/context`),
      await call(`${stack.url}/v1/context/${unknownId}`, { method: 'PATCH', body: { ttl: 5 } }),
      await remove(stack, unknownId),
    ]
    const counted = (await degraded()) - before
    const openCircuit = await metric(stack, 'store_circuit_open')
    await end()

    expect(turns.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(turns.map(({ text }) => text)).toEqual(turns.map(() => expect.stringMatching(/choices/)))
    expect(turns.map(({ headers }) => headers.get('x-session-id'))).toEqual([id, id, null])
    expect(turns.map(cacheLine)).toEqual([
      'miss; reason=store_unavailable',
      'miss; reason=store_unavailable',
      'none; reason=store_unavailable',
    ])
    expect(counted).toBe(3)
    expect(openCircuit).toBe(circuit)
    for (const response of refused) {
      expect(response.status).toBe(503)
      expect(errorOf(response)).toMatchObject({ type: 'api_error', code: 'session_store_unavailable' })
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(response.headers.get('x-session-id')).toBeNull()
    }
    expect(await eventually(() => view(stack, id))).toMatchObject({ ttl: 1000, turns: 1, kv: { stored: { turn: 1 } } })
    await eventually(async () => expect(cacheLine(await use(stack, id, { body }))).toMatch(/^hit; /))
    await eventually(async () => expect([200, 404]).toContain((await remove(stack, id)).status))
    expect(await metric(stack, 'store_circuit_open')).toBe(0)
  })
})
