import { afterAll, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, look, prompt, untilStored, use, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

let redis: Redis
const stack = useStack(
  {
    store: 'redis',
    pods: embeddedPods({ count: 1 }),
    env: { CTX_KV_CALL_TIMEOUT_MS: '2000', CTX_REAPER_ANNOUNCE_GRACE_MS: '2500' },
  },
  ({ redis: server }) => {
    redis = new Redis(server?.url ?? '', { protocol: 2 })
  },
)
afterAll(() => redis?.disconnect())

const body = { model, prompt: prompt(15), max_tokens: 2 }

/** Tokens that lie in the slots of all pods. */
const slotTokens = async (): Promise<readonly number[]> => {
  const lists = await Promise.all(stack.pods.map(({ address }) => call(`http://${address}/slots`)))
  return lists.flatMap(({ body }) => (body as { n_prompt_tokens: number }[]).map((slot) => slot.n_prompt_tokens))
}

/** A session whose first turn is stored, and its record's name in Redis. */
const storedSession = async (): Promise<{ readonly id: string; readonly key: string }> => {
  const before = await redis.keys('ctx:s:*')
  const id = await createdId(stack, { body })
  await untilStored(stack, id, 1)
  const [key, ...others] = (await redis.keys('ctx:s:*')).filter((name) => !before.includes(name))
  if (key === undefined || others.length > 0) throw new Error('a session is one record')
  return { id, key }
}

test('after Redis forgot everything a turn is a miss, and nothing of the sessions stays', async () => {
  const ids = [(await storedSession()).id, (await storedSession()).id]
  expect(await stack.kvFiles()).toHaveLength(2)

  await redis.flushall()

  const responses = await Promise.all(ids.map((id) => use(stack, id, { body })))
  expect(responses.map(({ status }) => status)).toEqual([200, 200])
  expect(responses.map(cacheLine)).toEqual(Array(2).fill('miss; reason=session_not_found'))
  expect((await look(stack, ids[0] ?? '')).status).toBe(404)
  await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
})

test('after Redis forgot everything idle slots are emptied', async () => {
  await storedSession()
  expect(Math.max(...(await slotTokens()))).toBeGreaterThan(0)

  await redis.flushall()

  await eventually(async () => expect(Math.max(...(await slotTokens()))).toBe(0))
})

test('a session whose pod is no longer there is served by another, with its KV', async () => {
  const { id, key } = await storedSession()
  const text = (await redis.get(key)) ?? ''
  const pod = (await view(stack, id)).kv.pod ?? ''
  expect(text).toContain(pod)

  await redis.set(key, text.replace(pod, '192.0.2.1:9'))
  const response = await use(stack, id, { body })

  expect(response.status).toBe(200)
  expect(cacheLine(response)).toMatch(/^hit; /)
  const seen = await untilStored(stack, id, 2)
  expect(stack.pods.map(({ address }) => address)).toContain(seen.kv.pod)
})
