import { expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call } from '../support/client.ts'
import { openai } from '../support/openai-client.ts'
import { look, untilStored } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { ask, type Continues } from './support.ts'

const former = 'the secret before the rotation, which is long enough'
const next = 'the secret after the rotation, which is long enough too'
const stack = useStack({
  store: 'redis',
  pods: embeddedPods({ count: 1 }),
  env: { CTX_TENANT_SECRET: former, CTX_RESPONSES_STORE: 'true' },
})
const client = () => openai(stack.url)
const other = () => openai(stack.url, { apiKey: 'another' })

/** Turns of one chain, each from the KV of those before. */
const createChain = () => {
  let turns = 0
  return async (continues?: Continues): Promise<{ readonly id: string; readonly session: string }> => {
    const input = `${turns}: ${'and tell me more about all of it, please. '.repeat(10)}`
    const { answer, cache, session } = await ask(client(), { input, continues, stream: turns % 2 === 1 })
    if (turns > 0) expect(cache).toMatch(/^hit/)
    turns += 1
    await untilStored(stack, session ?? '', turns)
    return { id: answer.id, session: session ?? '' }
  }
}

/** Envoy takes a moment to connect to it. */
const restart = async (env: Readonly<Record<string, string>>): Promise<void> => {
  await stack.gateway().child.stop()
  await stack.restartGateway(0, env)
  await eventually(async () => expect((await call(`${stack.url}/v1/responses/resp_unknown`)).status).toBe(404))
}

test('what began under the former secret is continued, read, changed and deleted under the next, by its caller alone', async () => {
  const [turn, converse] = [createChain(), createChain()]
  const first = await turn()
  const conversation = (await client().conversations.create({ metadata: { topic: 'rain' } })).id
  const said = await converse({ conversation })
  const unused = await createChain()()

  await restart({ CTX_TENANT_SECRET: next, CTX_TENANT_PREVIOUS_SECRET: former })
  const second = await turn({ previous_response_id: first.id })
  const third = await turn({ previous_response_id: second.id })
  const answered = await converse({ conversation })
  expect([third.session, answered.session]).toEqual([first.session, said.session])
  expect((await client().responses.retrieve(first.id)).id).toBe(first.id)
  expect((await client().responses.retrieve(third.id)).previous_response_id).toBe(second.id)
  expect((await client().responses.inputItems.list(third.id)).data).toHaveLength(5)
  const changed = await client().conversations.update(conversation, { metadata: { topic: 'sun' } })
  expect(changed.metadata).toEqual({ topic: 'sun' })
  await client().conversations.items.create(conversation, { items: [{ role: 'user', content: 'and more' }] })
  const items = (await client().conversations.items.list(conversation, { order: 'asc' })).data
  expect(items).toHaveLength(5)
  await client().conversations.items.delete(items[4]?.id ?? '', { conversation_id: conversation })

  const continues = { previous_response_id: third.id }
  await expect(ask(other(), { input: 'a', continues, stream: false })).rejects.toMatchObject({ status: 400 })
  await expect(other().responses.retrieve(third.id)).rejects.toMatchObject({ status: 404 })
  await expect(other().responses.delete(third.id)).rejects.toMatchObject({ status: 404 })
  await expect(other().conversations.delete(conversation)).rejects.toMatchObject({ status: 404 })

  for (const { id } of [first, second, third]) await client().responses.delete(id)
  await client().conversations.delete(conversation)
  for (const { session } of [first, said]) expect((await look(stack, session)).status).toBe(404)

  await restart({ CTX_TENANT_SECRET: next })
  const late = await call(`${stack.url}/v1/responses/${unused.id}`)
  expect(late.status).toBe(404)
})
