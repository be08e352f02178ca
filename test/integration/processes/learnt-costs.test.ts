import { afterAll, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { decodeCosts } from '../../../src/routing/cost-model-store.ts'
import { eventually } from '../../support/eventually.ts'
import { model } from '../support/client.ts'
import { createdId, untilTurns } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

let redis: Redis
const stack = useStack(
  { store: 'redis', pods: embeddedPods({ count: 1 }), env: { CTX_ROUTING_POLICY: 'predicted-ttft' } },
  ({ redis: server }) => {
    redis = new Redis(server?.url ?? '', { protocol: 2 })
  },
)
afterAll(() => redis?.disconnect())

/** A new session whose first turn computes a few hundred tokens, and streams its answer. */
const learnOnce = async (): Promise<void> => {
  const text = `${Math.random()} ${'A long prompt that nobody has computed. '.repeat(10)}`
  // Envoy notices after a while that a gateway is back.
  const streamed = { stream: true, stream_options: { include_usage: true } }
  const id = await eventually(() => createdId(stack, { body: { model, prompt: text, max_tokens: 1, ...streamed } }))
  await untilTurns(stack, id, 1)
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
  await stack.gateway().child.stop({ graceMs: 60_000 })
  expect(await prefillsKept()).toEqual({ [model]: 2 })

  await stack.restartGateway(0)
  await learnOnce()
  await stack.gateway().child.stop({ graceMs: 60_000 })
  expect((await prefillsKept())[model]).toBeGreaterThan(2)
})
