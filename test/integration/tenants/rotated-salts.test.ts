import { afterAll, describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { type SimulatedFleet, startSimulatedFleet } from '../../support/simulated-fleet/simulated-fleet.ts'
import { create, createdId, prompt, untilStored, untilTurns, use, view } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const former = 'the secret before the rotation, which is long enough'
const next = 'the secret after the rotation, which is long enough too'
const usage = z.object({
  usage: z.object({ prompt_tokens_details: z.object({ cached_tokens: z.number() }) }),
})

/** Connectors whose KV lies under salts, which follow from the secret. */
describe.each(['prefix-cache', 'lmcache'] as const)('%s', (connector) => {
  let fleet: SimulatedFleet | undefined
  const stack = useStack(async () => {
    fleet = await startSimulatedFleet()
    const instances = fleet.pods.map(({ address, instance }) => `${address}=${instance.id}`).join(',')
    const lmcache = { LMCACHE_URL: `http://${fleet.coordinator.address}`, LMCACHE_INSTANCES: instances }
    return {
      store: 'redis',
      pods: async () => fleet?.pods.map(({ address }) => ({ address })) ?? [],
      env: { CONNECTOR: connector, CTX_TENANT_SECRET: former, ...(connector === 'lmcache' ? lmcache : {}) },
    }
  })
  afterAll(() => fleet?.close())

  const restart = async (env: Record<string, string>): Promise<void> => {
    await stack.gateway().child.stop()
    await stack.restartGateway(0, env)
  }

  test('KV of a session that began under the former secret is used under both, and not without it', async () => {
    const body = { model: fleet?.modelName ?? '', prompt: prompt(300), max_tokens: 2 }
    const cached = async (id: string): Promise<number> => {
      // After a restart Envoy finds the gateway again.
      const { turns } = await eventually(() => view(stack, id))
      const answer = await use(stack, id, { body })
      await untilTurns(stack, id, turns + 1)
      return usage.parse(answer.body).usage.prompt_tokens_details.cached_tokens
    }
    const id = await createdId(stack, { body })
    if (connector === 'lmcache') await untilStored(stack, id, 1)
    else await untilTurns(stack, id, 1)
    expect(await cached(id)).toBeGreaterThan(200)

    await restart({ CTX_TENANT_SECRET: next, CTX_TENANT_PREVIOUS_SECRET: former })
    expect(await cached(id)).toBeGreaterThan(200)

    // The same prompt of the same caller, under the new secret.
    await restart({ CTX_TENANT_SECRET: next })
    const anew = await eventually(async () => {
      const answer = await create(stack, { body })
      expect(answer.status).toBe(200)
      return answer
    })
    expect(usage.parse(anew.body).usage.prompt_tokens_details.cached_tokens).toBe(0)
  })
})
