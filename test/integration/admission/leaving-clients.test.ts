import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { type HoldingPod, inUse, readMetric, send, startHoldingPod, waiting } from './support.ts'

let pod: HoldingPod
let stack: Stack

beforeAll(async () => {
  pod = await startHoldingPod()
  pod.letGo(true)
  stack = await startStack({
    pods: () => Promise.resolve([{ address: pod.pod.address }]),
    env: {
      CONNECTOR: 'none',
      CTX_LOG_LEVEL: 'warn',
      CTX_ADMISSION_REQUIREMENTS: 'prefill=R1:1',
      CTX_ADMISSION_RESOURCES: 'R1:10',
      CTX_ADMISSION_MAX_WAITING: '1000',
    },
  })
}, 60_000)

afterAll(async () => {
  await stack?.stop()
  await pod?.pod.stop()
})

const sendAndLeave = async (afterMs: number): Promise<void> => {
  const client = new AbortController()
  const timer = setTimeout(() => client.abort(), afterMs)
  const answer = fetch(`${stack.url}/v1/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer test-key', 'content-type': 'application/json', 'x-session-ttl': '60' },
    body: JSON.stringify({ model: 'A', prompt: 'Say this is a test' }),
    signal: client.signal,
  })
  await answer
    .then(
      (response) => response.text(),
      () => 'left',
    )
    .catch(() => 'left')
  clearTimeout(timer)
}

test('a thousand clients that disconnect at any moment leave no resource in use', async () => {
  for (let round = 0; round < 50; round += 1) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => sendAndLeave((round + index * 7) % 40)))
  }
  await eventually(async () => expect([await waiting(stack), await inUse(stack)]).toEqual([0, 0]))
  expect(await readMetric(stack, 'admission_leases_expired_total')).toMatchObject({ 'kind="prefill"': 0 })
  expect((await send(stack, 'A')).status).toBe(200)
}, 60_000)
