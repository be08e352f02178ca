import { expect, test } from '@jest/globals'
import { model } from '../support/client.ts'
import { cacheLine, createdId, prompt, untilStored, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

// The gateway does not notice that a pod has ended.
const stack = useStack({ env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '600000' } })

test('creates and turns that Envoy sends to another pod, since the chosen one has ended, are stored there', async () => {
  const [ended, other] = stack.pods
  await ended?.child?.kill()
  const headers = { 'routing-strategy': 'round-robin' }

  for (let session = 0; session < 2; session += 1) {
    const id = await createdId(stack, { headers })
    expect((await untilStored(stack, id, 1)).kv.pod).toBe(other?.address)
    const body = { model, prompt: prompt(30), max_tokens: 2 }
    for (const turn of [2, 3]) {
      const response = await use(stack, id, { headers, body })
      expect([response.status, cacheLine(response)]).toEqual([200, expect.stringMatching(/^(hit|miss)/)])
      expect((await untilStored(stack, id, turn)).kv.pod).toBe(other?.address)
    }
  }
})
