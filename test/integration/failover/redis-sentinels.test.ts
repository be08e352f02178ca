import { afterAll, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { startTestSentinels, type TestSentinels } from '../../support/start-test-sentinels.ts'
import { model } from '../support/client.ts'
import { cacheLine, createdId, prompt, remove, untilTurns, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

// A gateway behind Envoy whose sessions lie in the master that sentinels name.
let sentinels: TestSentinels | undefined
const stack = useStack(async () => {
  sentinels = await startTestSentinels()
  const { url, topology } = sentinels
  return {
    pods: embeddedPods({ count: 1 }),
    env: {
      REDIS_SENTINELS: url,
      REDIS_SENTINEL_MASTER: topology.master,
      REDIS_SENTINEL_PASSWORD: topology.sentinelPassword,
      CTX_SESSIONS_COMMAND_TIMEOUT_MS: '1000',
    },
  }
})
afterAll(() => sentinels?.close())

test('a session outlives the master that is replaced, and every turn is answered meanwhile', async () => {
  const body = { model, prompt: prompt(60), max_tokens: 2 }
  const id = await createdId(stack, { body })
  await untilTurns(stack, id, 1)
  const master = await sentinels?.master()
  if (sentinels === undefined || master === undefined) throw new Error('there is no master')
  await master.server.child.kill()
  expect((await use(stack, id, { body })).status).toBe(200)
  await sentinels.untilReplaced(master)

  await eventually(async () => cacheLine(await use(stack, id, { body }))?.startsWith('hit') === true)
  expect((await remove(stack, id)).status).toBe(200)
  await eventually(async () => (await stack.kvFiles()).length === 0)
})
