import { expect, test } from '@jest/globals'
import { model } from '../support/client.ts'
import { cacheLine, prompt, storedSession, use, view } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

// Only turns find out that a pod has ended.
const stack = useStack({ env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '600000' } })

test('the first turn after its pod was killed starts from stored KV at another pod', async () => {
  const body = { model, prompt: `a conversation that outlives its pod says ${prompt(60)}`, max_tokens: 4 }
  const id = await storedSession(stack, { body })
  const { pod: home } = (await view(stack, id)).kv
  await stack.pods.find(({ address }) => address === home)?.child?.kill()

  const answer = await use(stack, id, { body })
  expect(answer.status).toBe(200)
  expect(cacheLine(answer)).toMatch(/^hit; tier=store; /)
})
