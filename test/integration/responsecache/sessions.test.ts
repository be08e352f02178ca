import { expect, test } from '@jest/globals'
import { call, model } from '../support/client.ts'
import { cacheLine, createdId, untilStored, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { ask, cacheHeader } from './support.ts'

const stack = useStack({
  pods: embeddedPods({ count: 1 }),
  env: {
    CTX_RESPONSE_CACHE_MODELS: model,
    CTX_RESPONSE_CACHE_MAX_BYTES: '1000000',
    CTX_SESSIONS_SLIDING: 'true',
  },
})

const path = '/v1/completions'
let seed = 0
const fresh = () => {
  seed += 1
  return { model, prompt: `tell me about number ${seed}`, max_tokens: 3, temperature: 0 }
}

/** The slots of all pods: each names its last task. */
const slotsOfPods = (): Promise<readonly unknown[]> =>
  Promise.all(stack.pods.map(async ({ address }) => (await call(`http://${address}/slots`)).body))

test('a turn of a session that is in the cache reaches no engine, and counts', async () => {
  const body = fresh()
  const id = await createdId(stack, { body })
  await untilStored(stack, id, 1)
  const headers = { 'x-session-id': id }

  // A create is never answered from the cache nor kept in it, so this turn is computed.
  const computed = await ask(stack, { path, body, headers })
  expect([cacheHeader(computed), computed.status]).toEqual(['miss', 200])
  expect(cacheLine(computed)).toMatch(/^hit; tier=gpu/)
  const before = await untilStored(stack, id, 2)
  const slots = await slotsOfPods()
  expect(JSON.stringify(slots)).toContain('"id_task":')

  const answered = await ask(stack, { path, body, headers })

  expect([cacheHeader(answered), cacheLine(answered)]).toEqual(['hit', 'none; reason=response_cached'])
  expect(answered.text).toBe(computed.text)
  expect(answered.headers.get('x-session-id')).toBe(id)
  const { usage } = computed.body as {
    readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
  }
  const after = await view(stack, id)
  expect(after).toMatchObject({
    turns: 3,
    kv: before.kv,
    tokens: {
      prompt: before.tokens.prompt + usage.prompt_tokens,
      output: before.tokens.output + usage.completion_tokens,
    },
  })
  expect(Date.parse(answered.headers.get('x-session-expires-at') ?? '')).toBeGreaterThanOrEqual(after.expires_at * 1000)
  expect(await slotsOfPods()).toEqual(slots)

  // The session is as usable as before, from its KV.
  const next = await ask(stack, { path, body: { ...body, prompt: `${body.prompt} and more` }, headers })
  expect([cacheHeader(next), cacheLine(next)]).toEqual(['miss', expect.stringMatching(/^hit/)])
  await untilStored(stack, id, 4)
})
