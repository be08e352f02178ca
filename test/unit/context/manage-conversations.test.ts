import { describe, expect, test } from '@jest/globals'
import { error, openKept, output, tenant } from './kept-responses.ts'

describe('a conversation', () => {
  const user = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
  const create = async (send: Awaited<ReturnType<typeof openKept>>['send'], body?: unknown): Promise<string> => {
    const created = await send('POST', '/v1/conversations', body === undefined ? {} : { body })
    expect(created.status).toBe(200)
    return String((created.body as { id: unknown }).id)
  }

  test('is created, shown, changed and deleted', async () => {
    const { send } = await openKept()
    const id = await create(send, { metadata: { topic: 'rain' } })
    const path = `/v1/conversations/${id}`

    expect(id).toMatch(/^conv_[\w-]{48}$/)
    const view = { id, object: 'conversation', created_at: expect.any(Number), metadata: { topic: 'rain' } }
    expect(await send('GET', path)).toEqual({ status: 200, body: view })
    expect(await send('POST', path, { body: { metadata: { topic: 'sun' } } })).toEqual({
      status: 200,
      body: { ...view, metadata: { topic: 'sun' } },
    })
    expect((await send('GET', path, { as: 'key-b' })).status).toBe(404)
    expect(await send('DELETE', path)).toEqual({
      status: 200,
      body: { id, object: 'conversation.deleted', deleted: true },
    })
    const unknown = error(404, 'conversation_not_found', `Conversation with id '${id}' not found.`)
    for (const method of ['GET', 'DELETE']) expect(await send(method, path)).toEqual(unknown)
    expect(await send('POST', path, { body: { metadata: {} } })).toEqual(unknown)
    expect(await send('GET', `${path}/items`)).toEqual(unknown)
    expect(await send('POST', `${path}/items`, { body: { items: [user('x')] } })).toEqual(unknown)
  })

  test('may be created without a body', async () => {
    const { send } = await openKept()
    const id = await create(send)

    expect(await send('GET', `/v1/conversations/${id}`)).toMatchObject({ body: { metadata: {} } })
    expect((await send('POST', '/v1/conversations', { body: Buffer.alloc(0) })).status).toBe(200)
  })

  test('has its items created, listed, shown and removed', async () => {
    const { send } = await openKept()
    const id = await create(send, { items: [user('first')] })
    const path = `/v1/conversations/${id}/items`
    const added = await send('POST', path, { body: { items: [user('second'), output[2]] } })
    const { data } = added.body as { data: { id: string }[] }
    const itemId = data[0]?.id ?? ''

    expect(added).toMatchObject({ body: { object: 'list', has_more: false, first_id: itemId, last_id: 'fc_1' } })
    expect(data[0]).toEqual({ ...user('second'), id: itemId, status: 'completed' })
    expect(await send('GET', `${path}?order=asc&limit=1`)).toMatchObject({
      body: { data: [user('first')], has_more: true },
    })
    expect(await send('GET', `${path}/${itemId}`)).toEqual({ status: 200, body: data[0] })
    expect(await send('DELETE', `${path}/${itemId}`)).toMatchObject({ body: { id, object: 'conversation' } })
    expect(await send('GET', `${path}/${itemId}`)).toEqual(
      error(404, 'item_not_found', `Item with id '${itemId}' not found in this conversation.`),
    )
    expect((await send('DELETE', `${path}/${itemId}`)).status).toBe(404)
    expect(await send('GET', path)).toMatchObject({ body: { data: [output[2], user('first')] } })
  })

  test('that a turn holds cannot be changed', async () => {
    const { send, parts } = await openKept()
    const id = await create(send)
    await parts.history.open({ tenant, continued: { kind: 'conversation', id, turnId: 'turn', lockMs: 60_000 } })

    expect(await send('POST', `/v1/conversations/${id}/items`, { body: { items: [user('x')] } })).toEqual(
      error(
        400,
        'conversation_locked',
        'Another process is currently operating on this conversation. Please retry in a few seconds.',
        'conversation',
      ),
    )
  })

  test.each([
    { body: { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, ''])) }, param: 'metadata' },
    { body: { metadata: { ['k'.repeat(65)]: '' } }, param: 'metadata' },
    { body: { metadata: { k: 'v'.repeat(513) } }, param: 'metadata' },
    { body: { metadata: { k: 1 } }, param: 'metadata' },
    { body: { metadata: ['a'] }, param: 'metadata' },
    { body: { items: Array.from({ length: 21 }, () => user('x')) }, param: 'items' },
    { body: { items: 'x' }, param: 'items' },
    { body: { items: ['x'] }, param: 'items' },
    { body: { items: [{ content: 'x' }] }, param: 'items' },
    { body: { items: [{ type: 'item_reference', id: 'msg_1' }] }, param: 'items' },
  ])('is not created with wrong $param: $body', async ({ body, param }) => {
    const { send } = await openKept()

    expect(await send('POST', '/v1/conversations', { body })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_value', param } },
    })
  })

  test('has limits', async () => {
    const { send } = await openKept({ maxTenantBytes: 20_000, maxItemBytes: 5_000 })
    const id = await create(send)
    const path = `/v1/conversations/${id}/items`

    expect(await send('POST', path, { body: { items: [user('x'.repeat(5_001))] } })).toMatchObject({
      status: 400,
      body: { error: { code: 'conversation_too_large' } },
    })
    let answer = await send('POST', '/v1/conversations', { body: {} })
    for (let tries = 0; tries < 100 && answer.status === 200; tries += 1)
      answer = await send('POST', '/v1/conversations', { body: {} })
    expect(answer).toMatchObject({ status: 429, body: { error: { code: 'tenant_history_limit' } } })
    expect((await send('POST', path, { body: {} })).status).toBe(400)
    expect((await send('POST', `/v1/conversations/${id}`, { body: {} })).status).toBe(400)
  })
})
