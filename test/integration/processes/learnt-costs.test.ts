import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { decodeCosts } from '../../../src/routing/cost-model-store.ts'
import { call, model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Stack, startStack } from '../support/stack.ts'

let stack: Stack
let redis: Redis

beforeAll(async () => {
  stack = await startStack({ store: 'redis', env: { CTX_ROUTING_POLICY: 'predicted-ttft' } })
  redis = new Redis(stack.redis?.url ?? '', { protocol: 2 })
}, 120_000)

afterAll(async () => {
  redis?.disconnect()
  await stack?.stop()
})

/** A new session whose first turn computes a few hundred tokens. */
const learnOnce = async (): Promise<void> => {
  // Envoy finds out by and by that a gateway is back.
  const answer = await eventually(async () => {
    const prompt = `${Math.random()} ${'A long prompt that nobody has computed. '.repeat(10)}`
    const tried = await call(`${stack.url}/v1/context`, { body: { model, prompt, max_tokens: 1 } })
    expect(tried.status).toBe(200)
    return tried
  })
  const id = answer.headers.get('x-session-id') ?? ''
  await eventually(async () => {
    expect((await call(`${stack.url}/v1/context/${id}`)).body).toMatchObject({ turns: 1 })
  })
}

/** How many prefills the kept profile has seen of each model. */
const prefillsKept = async (): Promise<Readonly<Record<string, number>>> => {
  const text = await redis.get('ctx:routing:costs:llamacpp-slots')
  const costs = decodeCosts(text ?? '') ?? []
  return Object.fromEntries(costs.map(({ model: name, prefill }) => [name, prefill.count]))
}

test('cost model survives the end of the gateway, and the next one continues it', async () => {
  await learnOnce()
  await learnOnce()
  await stack.gateway().child.stop()
  expect(await prefillsKept()).toEqual({ [model]: 2 })

  await stack.restartGateway(0)
  await learnOnce()
  await stack.gateway().child.stop()
  expect((await prefillsKept())[model]).toBeGreaterThan(2)
}, 60_000)
