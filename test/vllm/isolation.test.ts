import { describe, expect, jest, test } from '@jest/globals'
import { vllmPod } from './support/fleet.ts'
import { completeOn } from './support/pod.ts'
import { freshPrompt } from './support/prompts.ts'
import { newSalts } from './support/salts.ts'
import { sessionClient } from './support/session.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

describe.each(['tenant', 'session'] as const)('isolation: %s', (isolation) => {
  const stack = useVllmStack({ env: { CTX_KV_ISOLATION: isolation, CTX_ROUTING_POLICY: 'round-robin' } })

  test('two tenants with the same prompt never share KV', async () => {
    const prompt = freshPrompt(450)
    const [one, other] = [sessionClient(stack(), 'one'), sessionClient(stack(), 'other')]
    const first = await one.create(prompt)
    await one.settled(first.id, 1)

    const strangers = [await other.create(prompt), await other.create(freshPrompt(200))]

    expect(strangers.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 0])
    await one.remove(first.id)
    for (const { id } of strangers) await other.remove(id)
  })

  test(`sessions of one tenant ${isolation === 'tenant' ? 'share what their prompts have in common' : 'share nothing'}`, async () => {
    const common = freshPrompt(450)
    const client = sessionClient(stack())
    const first = await client.create(`${common} for the first`)
    const { kv } = await client.settled(first.id, 1)

    const second = await client.create(`${common} for the second`)

    expect(second.cachedTokens).toBe(isolation === 'tenant' ? kv.stored?.tokens : 0)
    await client.remove(first.id)
    await client.remove(second.id)
  })

  test('a salt that a client sends is dropped', async () => {
    const prompt = freshPrompt(450)
    const client = sessionClient(stack())
    const chosen = 'a-salt-of-the-client'
    const salts = await newSalts(async () => {
      const created = await client.create(prompt, { body: { cache_salt: chosen } })
      await client.settled(created.id, 1)
      await client.use(created.id, `${prompt} more`, { body: { cache_salt: chosen } })
      await client.use(`ctx_${'u'.repeat(32)}`, `${prompt} and an unknown session`, { body: { cache_salt: chosen } })
      await client.remove(created.id)
    })

    expect(salts).not.toContain(chosen)
    const onPods = [vllmPod(0), vllmPod(1)].map((pod) => completeOn(pod, { prompt, salt: chosen }))
    expect((await Promise.all(onPods)).map(({ cachedTokens }) => cachedTokens)).toEqual([0, 0])
  })

  test('a turn of an unknown session gets no KV of another tenant', async () => {
    const prompt = freshPrompt(450)
    const client = sessionClient(stack())
    const created = await client.create(prompt)
    await client.settled(created.id, 1)

    const stray = await sessionClient(stack(), 'other').use(created.id, prompt)

    expect(stray).toMatchObject({ cache: 'miss; reason=session_not_found', cachedTokens: 0 })
    await client.remove(created.id)
  })
})
