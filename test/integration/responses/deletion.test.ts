import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { openai } from '../support/openai-client.ts'
import { look, untilStored, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { ask, type Continues } from './support.ts'

describe('responses that are deleted', () => {
  const stack = useStack({
    store: 'redis',
    env: { CTX_RESPONSES_STORE: 'true' },
    pods: embeddedPods({ count: 1, contextTokensPerSlot: 8192 }),
  })
  const client = () => openai(stack.url)
  let redis: Redis
  beforeAll(() => {
    redis = new Redis(stack.redis?.url ?? '', { protocol: 2 })
  })
  afterAll(() => redis.quit())

  /** A turn whose KV is stored. */
  const turn = async (number: number, continues?: Continues, headers: Record<string, string> = {}) => {
    const input = `${number}: ${'and tell me more about all of it, please. '.repeat(10)}`
    const { answer, session } = await ask(openai(stack.url, { headers }), { input, continues, stream: false })
    await untilStored(stack, session ?? '', number)
    return { id: answer.id, session: session ?? '' }
  }

  /** No text, no session and no KV. */
  const expectNothingLeft = async (session: string): Promise<void> => {
    expect(await redis.keys('ctx:responses:*')).toEqual([])
    expect((await look(stack, session)).status).toBe(404)
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
  }

  test('KV goes with the last response of a chain, and not before', async () => {
    const first = await turn(1)
    const left = await turn(2, { previous_response_id: first.id })
    await client().responses.delete(first.id)
    expect((await view(stack, left.session)).turns).toBe(2)
    expect((await stack.kvFiles()).length).toBeGreaterThan(0)
    const last = await turn(3, { previous_response_id: left.id })
    await client().responses.delete(left.id)
    await client().responses.delete(last.id)
    await expectNothingLeft(first.session)
  })

  test('KV goes with a conversation, and the responses of it stay whole', async () => {
    const { id } = await client().conversations.create()
    const first = await turn(1, { conversation: id })
    const second = await turn(2, { conversation: id })
    await client().conversations.delete(id)
    expect((await look(stack, first.session)).status).toBe(404)
    await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
    expect((await client().responses.retrieve(second.id)).id).toBe(second.id)
    for (const response of [first, second]) await client().responses.delete(response.id)
    await expectNothingLeft(first.session)
  })

  test('a session that its client named outlives the text', async () => {
    const { id, session } = await turn(1, undefined, { 'thread-id': 'my own' })
    await client().responses.delete(id)
    expect(await redis.keys('ctx:responses:*')).toEqual([])
    expect((await view(stack, session)).turns).toBe(1)
    await call(`${stack.url}/v1/context/${session}`, { method: 'DELETE' })
    await expectNothingLeft(session)
  })

  test('an erased tenant has neither', async () => {
    const { session } = await turn(1)
    const admin = `${stack.gateway().adminUrl}/api`
    const { tenant } = (await call(`${admin}/sessions/${session}`)).body as { readonly tenant: string }
    const headers = { 'x-requested-with': 'context-cache' }
    expect((await call(`${admin}/tenants/${tenant}`, { method: 'DELETE', headers })).status).toBe(200)
    await expectNothingLeft(session)
  })
})
