import { expect, test } from '@jest/globals'
import { createScriptedPod } from '../support/scripted-pod.ts'
import { createdId, untilTurns, use } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'

const pods = [createScriptedPod(), createScriptedPod(), createScriptedPod()]
const stack = useStack({
  pods: async () => {
    await Promise.all(pods.map((pod) => pod.start()))
    return pods.map((pod) => ({ address: pod.address.replace('127.0.0.1', 'localhost'), stop: () => pod.stop() }))
  },
  env: { CONNECTOR: 'none', CTX_ROUTING_POLICY: 'session-affinity' },
})

const served = (): readonly number[] => pods.map((pod) => pod.requests().length)

test('pods that are configured by host name are reached, each session on its own pod', async () => {
  for (let session = 0; session < 6; session++) {
    const body = { model: 'scripted', prompt: `session ${session}` }
    const id = await createdId(stack, { body })
    expect((await untilTurns(stack, id, 1)).kv.pod).toMatch(/^127\.0\.0\.1:\d+$/)
    const before = served()
    for (let turn = 0; turn < 5; turn++) expect((await use(stack, id, { body })).status).toBe(200)
    // Envoy would spread them if it did not know the pod that the gateway names.
    expect(
      served()
        .map((count, index) => count - (before[index] ?? 0))
        .sort((left, right) => left - right),
    ).toEqual([0, 0, 5])
  }
})
