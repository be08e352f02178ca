import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'

jest.setTimeout(60_000)

let pods: readonly ScriptedPod[] = []
let stack: Stack

beforeAll(async () => {
  pods = [await startScriptedPod(), await startScriptedPod(), await startScriptedPod()]
  const byName = pods.map(({ address }) => ({ address: address.replace('127.0.0.1', 'localhost') }))
  stack = await startStack({ pods: async () => byName, env: { CONNECTOR: 'none', CTX_ROUTING_POLICY: 'session-affinity' } })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  await Promise.all(pods.map((pod) => pod.stop()))
})

const served = (): readonly number[] => pods.map((pod) => pod.requests().length)

test('pods that are configured by host name are reached, each session on its own pod', async () => {
  for (let session = 0; session < 6; session++) {
    const body = { model: 'scripted', prompt: `session ${session}` }
    const created = await call(`${stack.url}/v1/context`, { body })
    const id = created.headers.get('x-session-id') ?? ''
    expect([created.status, id]).toEqual([200, expect.stringMatching(/^ctx_/)])
    const { body: view } = await call(`${stack.url}/v1/context/${id}`)
    expect(view).toMatchObject({ kv: { pod: expect.stringMatching(/^127\.0\.0\.1:\d+$/) } })
    const before = served()
    for (let turn = 0; turn < 5; turn++)
      expect((await call(`${stack.url}/v1/completions`, { headers: { 'x-session-id': id }, body })).status).toBe(200)
    // Envoy would spread them if it did not know the pod that the gateway names.
    expect(
      served()
        .map((count, index) => count - (before[index] ?? 0))
        .sort((left, right) => left - right),
    ).toEqual([0, 0, 5])
  }
})
