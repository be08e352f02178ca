import { expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { CursorPage } from 'openai/pagination'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { type ContextView, readView } from '../support/sessions.ts'
import { useStack } from '../support/use-stack.ts'
import { anyApi, type Conversation, continued, opening, type Turn } from './conversation.ts'
import { sessionIdOf, tokensInPods, untilStored } from './session.ts'

const stack = useStack()

/** The SDK with a credential of its own, so that its lists hold its own sessions alone. */
const newTenant = (name: string): OpenAI => new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: name, maxRetries: 0 })

const create = (client: OpenAI, conversation: Conversation): Promise<Turn> =>
  anyApi.create(client, { conversation, streamed: false })

test('SDK pagination lists sessions, newest first', async () => {
  const client = newTenant('lists')
  const created: string[] = []
  for (const topic of ['one', 'two', 'three', 'four', 'five'])
    created.unshift(sessionIdOf(await create(client, opening(topic))))

  const ids: string[] = []
  let pages = 0
  for await (const page of (
    await client.getAPIList('/context', CursorPage<ContextView>, { query: { limit: 2 } })
  ).iterPages()) {
    pages += 1
    ids.push(...page.data.map((item) => readView(item).id))
  }

  expect(ids).toEqual(created)
  expect(pages).toBe(3)
  for (const id of created) await untilStored(client, id, 1)
  for (const id of created) await client.delete(`/context/${id}`)
  await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
})

test('a fork starts from the KV of its session on any pod, and outlives it', async () => {
  const client = newTenant('forks')
  const trunk = opening('forks')
  const first = await create(client, trunk)
  const parent = sessionIdOf(first)
  const { kv: stored } = await untilStored(client, parent, 1)
  const fork = async () => {
    const headers = { 'x-session-ttl': '120' }
    const { data, response } = await client.post(`/context/${parent}/fork`, { headers }).withResponse()
    return { ...readView(data), header: response.headers.get('x-session-id') }
  }

  const [left, right] = [await fork(), await fork()]
  expect(left).toMatchObject({ header: left.id, ttl: 120, turns: 1, kv: { stored: stored.stored } })
  await expect(newTenant('others').post(`/context/${parent}/fork`)).rejects.toMatchObject({ code: 'session_not_found' })
  await client.delete(`/context/${parent}`)

  const taken = []
  for (const { id } of [left, right]) {
    const conversation = continued(trunk, first, `what does ${id} say?`)
    const headers = { 'x-session-id': id, 'routing-strategy': 'round-robin' }
    taken.push(await anyApi.send(client, { conversation, streamed: false, headers }))
    await untilStored(client, id, 2)
  }

  for (const { headers, usage } of taken) {
    expect(headers.get('x-context-cache')).toMatch(/^hit/)
    expect(usage?.cached).toBeGreaterThanOrEqual(first.usage?.prompt ?? Number.NaN)
  }
  await eventually(async () => expect(await stack.kvFiles()).toHaveLength(2))
  for (const { id } of [left, right]) await client.delete(`/context/${id}`)
  await eventually(async () => expect(await stack.kvFiles()).toEqual([]))
})

test.each<{ name: string; end: (client: OpenAI, id: string) => Promise<unknown> }>([
  {
    name: 'is deleted',
    end: async (client, id) =>
      expect(await client.delete(`/context/${id}`)).toEqual({ id, object: 'context.deleted', deleted: true }),
  },
  { name: 'expires', end: (client, id) => client.patch(`/context/${id}`, { body: { ttl: 1 } }) },
])('a session that $name leaves neither its file nor KV in any pod, and its prompt is computed again', async (row) => {
  const client = newTenant(row.name)
  let conversation = opening(row.name)
  let response = await create(client, conversation)
  const id = sessionIdOf(response)
  const pods = new Set([(await untilStored(client, id, 1)).kv.pod])
  for (let turns = 2; pods.size < stack.pods.length; turns += 1) {
    conversation = continued(conversation, response, 'and then?')
    const headers = { 'x-session-id': id, 'routing-strategy': 'round-robin' }
    response = await anyApi.send(client, { conversation, streamed: false, headers })
    pods.add((await untilStored(client, id, turns)).kv.pod)
  }
  await eventually(async () => expect(await stack.kvFiles()).toHaveLength(1))

  await row.end(client, id)

  await eventually(() => expect(client.get(`/context/${id}`)).rejects.toMatchObject({ code: 'session_not_found' }))
  await expect(client.delete(`/context/${id}`)).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  await eventually(async () => {
    expect(await tokensInPods(stack)).toEqual([0, 0])
    expect(await stack.kvFiles()).toEqual([])
  })
  const body = { model, prompt: conversation.map(({ text }) => text).join('\n'), max_tokens: 1 }
  for (const { address } of stack.pods) {
    const direct = await call(`http://${address}/v1/completions`, { body })
    expect(direct.body).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 0 } } })
  }
})
