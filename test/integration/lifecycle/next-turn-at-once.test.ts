import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { type EngineProxy, startEngineProxies } from '../faults/engine-proxy.ts'
import { type HttpResponse, model } from '../support/client.ts'
import { cacheLine, create, createdId, prompt, untilTurns, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const usageSchema = z.object({
  usage: z.object({ prompt_tokens: z.int(), prompt_tokens_details: z.object({ cached_tokens: z.int() }) }),
})
const cachedTokens = ({ body }: HttpResponse) => usageSchema.parse(body).usage.prompt_tokens_details.cached_tokens

describe('turn right after a create', () => {
  let pods: readonly EngineProxy[] = []
  const stack = useStack({
    store: 'redis',
    pods: async (kvDirectory) => {
      pods = await startEngineProxies({ count: 2, kvDirectory, slots: 4 })
      return pods
    },
    // A turn waits for a save as long as for a load.
    env: { CTX_KV_LOAD_BUDGET_MS: '5000' },
  })
  const bodyOf = (topic: string) => ({ model, prompt: `${topic}: ${prompt(20)}`, max_tokens: 2 })

  test.each([1, 2, 3, 4, 5])('uses the KV that the create has just left in the pod (%i)', async (number) => {
    const body = bodyOf(`story ${number}`)
    const created = await create(stack, { body })
    const next = await use(stack, created.headers.get('x-session-id') ?? '', { body })
    expect(cacheLine(next)).toMatch(/^hit; tier=gpu; tokens=\d+$/)
    // An engine computes the last token of a prompt always.
    expect(cachedTokens(next)).toBe(usageSchema.parse(created.body).usage.prompt_tokens - 1)
  })

  test('misses on another pod, and on the same one while the KV is being saved for long', async () => {
    const saves = pods.map((pod) => pod.hold(/action=save/))
    const body = bodyOf('a long story')
    const id = await createdId(stack, { body })
    const headers = { 'routing-strategy': 'round-robin' }
    // At once, so that the budget passes only once.
    const turns = await Promise.all([use(stack, id, { body, headers }), use(stack, id, { body, headers })])
    for (const { release } of saves) release()
    expect(turns.map(cacheLine)).toEqual(['miss; reason=offload_pending', 'miss; reason=offload_pending'])
    expect(turns.map(cachedTokens)).toEqual([0, 0])
    await untilTurns(stack, id, 3)
  })
})
