import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { Stack } from '../integration/support/stack.ts'
import { eventually } from '../support/eventually.ts'
import { freshPrompt, freshSalt } from './support/prompts.ts'
import { newSalts, nothing, piecesOf } from './support/salts.ts'
import { moveToOtherPod, readHit, type SessionClient, sessionClient } from './support/session.ts'
import { startVllmStack, useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

const untilGone = async (salts: readonly string[]): Promise<void> => {
  for (const salt of salts) {
    await eventually(async () => expect(await piecesOf(salt)).toEqual(nothing), { timeoutMs: 90_000 })
  }
}

/** A session that both pods have seen. */
const wander = async (client: SessionClient, prompt: string): Promise<string> => {
  const { id } = await client.create(prompt)
  await client.settled(id, 1)
  await moveToOtherPod(client, { id, prompt })
  return id
}

describe.each(['tenant', 'session'] as const)('isolation: %s', (isolation) => {
  const stack = useVllmStack({ env: { CTX_KV_ISOLATION: isolation } })

  test.each([
    { how: 'DELETE', end: (client: SessionClient, id: string) => client.remove(id) },
    {
      how: 'expiry',
      end: (client: SessionClient, id: string) => client.use(id, 'a last word', { headers: { 'x-session-ttl': '1' } }),
    },
  ])('$how removes the KV from the store and from the memory of LMCache', async ({ end }) => {
    const client = sessionClient(stack(), freshSalt())
    let id = ''
    const salts = await newSalts(async () => {
      id = await wander(client, freshPrompt(450))
    })
    const [before, ...more] = await Promise.all(salts.map(piecesOf))
    expect(more).toEqual([])
    expect(before).toEqual({ files: expect.any(Number), inMemory: expect.any(Number) })
    expect(before).not.toEqual(nothing)

    await end(client, id)

    await untilGone(salts)
  })

  test('DELETE keeps the KV that another session of the tenant shares', async () => {
    const common = freshPrompt(450)
    const client = sessionClient(stack(), freshSalt())
    const [first, second] = [
      await client.create(`${common} for the first`),
      await client.create(`${common} for the second`),
    ]
    await client.settled(first.id, 1)
    const { kv } = await client.settled(second.id, 1)

    await client.remove(first.id)
    const { turn } = await moveToOtherPod(client, { id: second.id, prompt: `${common} for the second` })

    expect(turn.cachedTokens).toBeGreaterThanOrEqual(kv.stored?.tokens ?? Number.NaN)
    await client.remove(second.id)
  })
})

describe('isolation: session', () => {
  const stack = useVllmStack({ env: { CTX_KV_ISOLATION: 'session', CTX_ROUTING_POLICY: 'round-robin' } })

  test('the prompt of a deleted session is cold again on every pod', async () => {
    const client = sessionClient(stack())
    const prompt = freshPrompt(450)
    const id = await wander(client, prompt)
    await client.remove(id)

    const again = [await client.create(prompt), await client.create(prompt)]
    const used = await client.use(id, prompt)

    expect(again.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 0])
    expect(used).toMatchObject({ cache: 'miss; reason=session_deleted', cachedTokens: 0 })
    for (const session of again) await client.remove(session.id)
  })

  test('an expired session starts anew without its earlier KV', async () => {
    const client = sessionClient(stack())
    const prompt = freshPrompt(450)
    const { id } = await client.create(prompt, { headers: { 'x-session-ttl': '2' } })
    await eventually(async () => !(await client.exists(id)))
    const expired = await client.use(id, prompt, { headers: { 'x-session-ttl': '600' } })

    expect(expired.cache).toBe('miss; reason=session_expired')
    expect(expired.cachedTokens).toBe(0)
    await eventually(() => client.exists(id))
    await client.remove(id)
  })
})

describe('a killed gateway', () => {
  let stack: Stack
  beforeEach(async () => {
    stack = await startVllmStack({
      store: 'redis',
      env: {
        CTX_KV_CALL_TIMEOUT_MS: '4000',
        CTX_REAPER_ANNOUNCE_GRACE_MS: '5000',
      },
    })
  }, 120_000)
  afterEach(async () => {
    await stack?.stop()
  }, 60_000)

  test('after a turn leaves stored KV that the next gateway loads, and removes at expiry', async () => {
    const client = sessionClient(stack, freshSalt())
    const prompt = freshPrompt(450)
    let id = ''
    const salts = await newSalts(async () => {
      ;({ id } = await client.create(prompt))
      await client.settled(id, 1)
    })
    expect(salts).toHaveLength(1)
    await stack.gateway().child.kill()
    await stack.restartGateway()
    await eventually(() => client.exists(id))

    const { turn } = await moveToOtherPod(client, { id, prompt })
    await client.use(id, 'a last word', { headers: { 'x-session-ttl': '1' } })

    expect(readHit(turn.cache)).toMatchObject({ tier: 'store' })
    await untilGone(salts)
  })
})
