import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { call } from '../support/client.ts'
import { openai } from '../support/openai-client.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const env = { CTX_RESPONSES_STORE: 'true' }

const user = (text: string): OpenAI.Conversations.ItemCreateParams['items'][number] => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
})

describe.each([
  { wiring: 'lua', store: 'redis' },
  { wiring: 'picker', store: 'memory' },
] as const)('conversations by the SDK, wired as $wiring, in $store', (options) => {
  const { stack, pod } = useScriptedStack({ ...options, env })

  test('are created, filled, read page by page, changed and deleted, and no engine is asked', async () => {
    const client = openai(stack.url)
    const { id } = await client.conversations.create({ metadata: { topic: 'rain' }, items: [user('first')] })
    const added = await client.conversations.items.create(id, { items: [user('second'), user('third')] })
    const texts: unknown[] = []
    for await (const item of client.conversations.items.list(id, { limit: 2, order: 'asc' }))
      texts.push('content' in item ? item.content : item)
    const [second] = added.data
    const shown = await client.conversations.items.retrieve(second?.id ?? '', { conversation_id: id })
    await client.conversations.items.delete(second?.id ?? '', { conversation_id: id })
    const changed = await client.conversations.update(id, { metadata: { topic: 'sun' } })
    const deleted = await client.conversations.delete(id)

    expect(texts).toEqual(['first', 'second', 'third'].map((text) => [{ type: 'input_text', text }]))
    expect(shown).toEqual(second)
    expect(changed.metadata).toEqual({ topic: 'sun' })
    expect(deleted).toEqual({ id, object: 'conversation.deleted', deleted: true })
    await expect(client.conversations.retrieve(id)).rejects.toMatchObject({
      status: 404,
      code: 'conversation_not_found',
    })
    expect(pod.requests()).toEqual([])
  })

  test('with items as large as they may be come back whole', async () => {
    const client = openai(stack.url)
    const text = 'x'.repeat(1_000_000)
    const { id } = await client.conversations.create({ items: [user(text), user(text), user(text), user(text)] })
    const page = await client.conversations.items.list(id, { limit: 100 })

    // A page ends early, and says so.
    expect([page.data.length, page.has_more]).toEqual([3, true])
    expect(JSON.stringify(page.data).length).toBeGreaterThan(3_000_000)
  })

  test('errors are OpenAI’s, and another key’s conversation is unknown', async () => {
    const { id } = await openai(stack.url).conversations.create({})
    const other = openai(stack.url, { apiKey: 'another-key' })

    await expect(other.conversations.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
    const unknown = { status: 404, code: 'response_not_found' }
    await expect(openai(stack.url).responses.retrieve('resp_unknown')).rejects.toMatchObject(unknown)
    await expect(openai(stack.url).responses.delete('resp_unknown')).rejects.toMatchObject(unknown)
    await expect(openai(stack.url).responses.cancel('resp_unknown')).rejects.toMatchObject({ status: 400 })
    await expect(
      openai(stack.url).conversations.create({ items: Array.from({ length: 21 }, () => user('x')) }),
    ).rejects.toMatchObject({ status: 400, param: 'items' })
    expect((await call(`${stack.url}/v1/conversations`, { method: 'PUT', body: {} })).status).toBe(405)
  })

  test.each([
    ['POST', '/v1/conversations'],
    ['GET', '/v1/conversations/conv_1'],
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
  ])('without a gateway %s %s fails, and reaches no engine', async (method, path) => {
    await stack.gateway().child.kill()
    const response = await call(`${stack.url}${path}`, { method, ...(method === 'POST' ? { body: {} } : {}) })

    expect(response.status).toBe(503)
    expect(pod.requests()).toEqual([])
  })
})
