import { expect, test } from '@jest/globals'
import { model } from '../support/client.ts'
import { cacheLine, createdId, prompt, storedSession, untilStored, use, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

// Only turns find out that a pod has ended.
const stack = useStack({ pods: embeddedPods({ count: 3 }), env: { CTX_ROUTING_HEALTH_INTERVAL_MS: '600000' } })

/** Ends a pod that runs, and returns those that still run. */
const endPod = async (address?: string) => {
  const running = stack.pods.filter(({ child }) => child?.isRunning())
  const ended = running.find((pod) => address === undefined || pod.address === address)
  await ended?.child?.kill()
  return running.filter((pod) => pod !== ended)
}

test('the first turn after its pod was killed starts from stored KV at another pod', async () => {
  const body = { model, prompt: `a conversation that outlives its pod says ${prompt(60)}`, max_tokens: 4 }
  const id = await storedSession(stack, { body })
  const { pod: home } = (await view(stack, id)).kv
  await endPod(home ?? 'none')

  const answer = await use(stack, id, { body })
  expect(answer.status).toBe(200)
  expect(cacheLine(answer)).toMatch(/^hit; tier=store; /)
})

test('creates and turns that Envoy sends to another pod, since the chosen one has ended, are stored there', async () => {
  const [other] = await endPod()
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
