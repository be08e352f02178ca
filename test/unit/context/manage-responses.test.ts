import { describe, expect, test } from '@jest/globals'
import { StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { createContextGateway } from '../../support/context-gateway.ts'
import { error, openKept, output, seen, stored } from './kept-responses.ts'

describe('a response', () => {
  test('is shown as it was, and after its deletion is unknown', async () => {
    const { send } = await openKept()

    expect(await send('GET', '/v1/responses/resp_1')).toEqual({ status: 200, body: stored })
    expect(await send('DELETE', '/v1/responses/resp_1')).toEqual({
      status: 200,
      body: { id: 'resp_1', object: 'response', deleted: true },
    })
    const unknown = error(404, 'response_not_found', "Response with id 'resp_1' not found.")
    expect(await send('GET', '/v1/responses/resp_1')).toEqual(unknown)
    expect(await send('DELETE', '/v1/responses/resp_1')).toEqual(unknown)
  })

  test('of another tenant is unknown, and a request without a credential is refused', async () => {
    const { send } = await openKept()

    expect((await send('GET', '/v1/responses/resp_1', { as: 'key-b' })).status).toBe(404)
    expect((await send('GET', '/v1/responses/resp_1/input_items', { as: 'key-b' })).status).toBe(404)
    expect((await send('DELETE', '/v1/responses/resp_1', { as: 'key-b' })).status).toBe(404)
    expect((await send('GET', '/v1/responses/resp_1', { headers: { authorization: [] } })).status).toBe(401)
    expect((await send('GET', '/v1/responses/resp_1')).status).toBe(200)
  })

  test('is replayed as the events that make it', async () => {
    const { send } = await openKept()
    const { body } = await send('GET', '/v1/responses/resp_1?stream=true')
    const events = String(body)
      .split('\n\n')
      .filter((text) => text !== '')
      .map((text) => {
        const [, type = '', data = ''] = /^event: (.+)\ndata: (.+)$/.exec(text) ?? []
        return { named: type, ...JSON.parse(data) }
      })

    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.content_part.added',
      'response.refusal.delta',
      'response.refusal.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, number) => number))
    expect(events.every(({ named, type }) => named === type)).toBe(true)
    expect(events[0].response).toEqual({ ...stored, status: 'in_progress', output: [], usage: null })
    expect(events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)).toEqual(output)
    expect(events.at(-1).response).toEqual(stored)
    expect(events[10]).toMatchObject({ item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'It rains.' })

    const rest = await send('GET', '/v1/responses/resp_1?stream=true&starting_after=22')
    expect(rest.body).toBe(
      String(body).slice(
        String(body).indexOf(
          'event: response.output_item.done\ndata: {"type":"response.output_item.done","output_index":3',
        ),
      ),
    )
    expect(await send('GET', '/v1/responses/resp_1?stream=true&starting_after=x')).toEqual(
      error(400, 'invalid_value', 'starting_after is a whole number.', 'starting_after'),
    )
  })

  test('that is too large to be built at once is shown, and not replayed', async () => {
    const { send, keep } = await openKept({ maxItemBytes: 1_000_000, maxConversationBytes: 1_000_000 })
    await keep('resp_2', undefined, {
      output: [{ type: 'numbers', numbers: Array.from({ length: 200_000 }, () => 1) }],
    })

    expect((await send('GET', '/v1/responses/resp_2')).status).toBe(200)
    expect(await send('GET', '/v1/responses/resp_2?stream=true')).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_value', param: 'stream' } },
    })
  })

  test('lists the items that it was computed from, page by page', async () => {
    const { send, keep } = await openKept()
    await keep('resp_2', 'resp_1')
    const page = async (query: string) => (await send('GET', `/v1/responses/resp_2/input_items${query}`)).body
    const all = (await page('?order=asc')) as { data: { id: string }[] }
    const ids = all.data.map(({ id }) => id)

    expect(all).toMatchObject({ object: 'list', has_more: false, first_id: ids[0], last_id: ids[5] })
    expect(ids.slice(1, 5)).toEqual(['rs_1', 'msg_1', 'fc_1', 'new_1'])
    expect(all.data[0]).toEqual({
      id: ids[0],
      type: 'message',
      role: 'user',
      status: 'completed',
      content: [{ type: 'input_text', text: 'about resp_1' }],
    })
    expect(await page('')).toMatchObject({ data: all.data.toReversed() })
    expect(await page('?order=asc&limit=2&include[]=reasoning.encrypted_content')).toEqual({
      object: 'list',
      data: all.data.slice(0, 2),
      first_id: ids[0],
      last_id: 'rs_1',
      has_more: true,
    })
    expect(await page('?order=asc&limit=2&after=rs_1')).toMatchObject({ data: all.data.slice(2, 4), has_more: true })
    expect(await page(`?order=asc&after=${ids[5]}`)).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
    expect(await page('?after=msg_0')).toEqual(
      error(404, 'item_not_found', "Item with id 'msg_0' not found.", 'after').body,
    )
    expect(await page('?limit=0')).toMatchObject({ error: { code: 'invalid_value', param: 'limit' } })
    expect(await page('?order=up')).toMatchObject({ error: { code: 'invalid_value', param: 'order' } })
  })

  test('has no background, and no other method or path', async () => {
    const { send } = await openKept()

    expect(await send('POST', '/v1/responses/resp_1/cancel', { body: {} })).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported_parameter', param: 'background' } },
    })
    expect((await send('PATCH', '/v1/responses/resp_1')).status).toBe(405)
    for (const path of ['/v1/responses/', '/v1/responses/resp_1/', '/v1/responses/compact', '/v1/responses/a/b/c'])
      expect((await send('GET', path)).status).toBe(404)
  })
})

test('where nothing is kept the paths are unknown', async () => {
  const gateway = createContextGateway()
  for (const [method, path] of [
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/v1/responses/resp_1/input_items'],
    ['POST', '/v1/conversations'],
    ['GET', '/v1/conversations/conv_1/items'],
  ] as const)
    expect(seen(await gateway.send({ method, path }))).toMatchObject({
      status: 404,
      body: { error: { code: 'unknown_path' } },
    })
})

test('a store that does not answer is told as such', async () => {
  const { parts } = await openKept()
  const gateway = createContextGateway({
    responses: { ...parts, history: { get: () => Promise.reject(new StoreUnavailableError('gone')) } },
  })

  expect(seen(await gateway.send({ method: 'GET', path: '/v1/responses/resp_1' }))).toMatchObject({
    status: 503,
    body: { error: { code: 'session_store_unavailable' } },
  })
  expect(gateway.events.of('storeFault')).toHaveLength(1)
})
