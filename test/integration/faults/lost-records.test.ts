import { afterAll, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { eventually } from '../../support/eventually.ts'
import { model } from '../support/client.ts'
import { cacheLine, look, prompt, storedSession, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

let redis: Redis
const stack = useStack(
  {
    store: 'redis',
    pods: embeddedPods({ count: 1 }),
    env: { CTX_KV_CALL_TIMEOUT_MS: '5000', CTX_REAPER_ANNOUNCE_GRACE_MS: '5100' },
  },
  ({ redis: server }) => {
    redis = new Redis(server?.url ?? '', { protocol: 2 })
  },
)
afterAll(() => redis?.disconnect())

const body = { model, prompt: prompt(15), max_tokens: 2 }

test('after Redis forgot everything a turn is a miss, and nothing of the sessions stays', async () => {
  const ids = [await storedSession(stack, { body }), await storedSession(stack, { body })]
  expect(await stack.kvFiles()).toHaveLength(2)

  await redis.flushall()

  const responses = await Promise.all(ids.map((id) => use(stack, id, { body })))
  expect(responses.map(({ status }) => status)).toEqual([200, 200])
  expect(responses.map(cacheLine)).toEqual(Array(2).fill('miss; reason=session_not_found'))
  expect((await look(stack, ids[0] ?? '')).status).toBe(404)
  await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
})
