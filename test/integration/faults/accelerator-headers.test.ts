import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { call } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { createdId, use, view } from './support.ts'

jest.setTimeout(60_000)

let pods: readonly [ScriptedPod, ScriptedPod]
let stack: Stack

beforeAll(async () => {
  pods = [await startScriptedPod(), await startScriptedPod()]
  stack = await startStack({ pods: async () => pods, env: { CONNECTOR: 'none' } })
}, 120_000)
afterAll(async () => {
  await stack?.stop()
  for (const pod of pods ?? []) await pod.stop()
}, 30_000)

/** header_to_metadata ignores values of more than 8 KB, and a ticket names the session's model. */
test('a turn with a ticket of more than 8 KB counts', async () => {
  const body = { model: 'm'.repeat(9000), prompt: 'hello' }
  const id = await createdId(stack, { body })
  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 1 }))
  expect((await use(stack, id, { body })).status).toBe(200)
  await eventually(async () => expect(await view(stack, id)).toMatchObject({ turns: 2 }))
})

test('a turn without a gateway is not routed by a header of the client', async () => {
  const body = { model: 'scripted', prompt: 'hello' }
  const id = await createdId(stack, { body })
  await stack.gateway().child.kill()
  const [, target] = pods
  const [before] = pods.map((pod) => pod.requests().length)
  for (let time = 0; time < 20; time++) {
    const answer = await call(`${stack.url}/v1/completions`, {
      headers: { 'x-session-id': id, 'x-context-turn-pods': target.address },
      body,
    })
    expect(answer.status).toBe(200)
  }
  expect(pods[0].requests().length).toBeGreaterThan(before ?? 0)
})
