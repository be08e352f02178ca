import { describe, expect, jest, test } from '@jest/globals'
import OpenAI from 'openai'
import { type Api, apis, type Conversation } from '../integration/lifecycle/conversation.ts'
import { sessionIdOf } from '../integration/lifecycle/session.ts'
import { vllmFleet } from './support/fleet.ts'
import { freshPrompt } from './support/prompts.ts'
import { anywhere, moveToOtherPod, readHit, sessionClient } from './support/session.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

const stack = useVllmStack()

describe('a session on vLLM', () => {
  test('is stored in whole chunks, hits in the pod of its last turn, and is loaded into the other pod', async () => {
    const client = sessionClient(stack())
    const prompt = freshPrompt(450)
    const created = await client.create(prompt)
    const { kv } = await client.settled(created.id, 1)
    const { chunkTokens } = vllmFleet()
    expect(created).toMatchObject({ cache: 'miss; reason=new_session', cachedTokens: 0 })
    expect(kv.stored?.tokens).toBe(Math.floor(created.promptTokens / chunkTokens) * chunkTokens)
    expect(kv.stored?.bytes).toBeGreaterThan(0)

    const second = await client.use(created.id, `${prompt} and more`)
    expect(readHit(second.cache)).toEqual({ tier: 'gpu', tokens: kv.stored?.tokens, load: undefined })
    expect(second.cachedTokens).toBeGreaterThanOrEqual(kv.stored?.tokens ?? Number.NaN)

    await client.settled(created.id, 2)
    const { turn, before } = await moveToOtherPod(client, { id: created.id, prompt: `${prompt} and more` })
    expect(readHit(turn.cache)).toEqual({ tier: 'store', tokens: before.kv.stored?.tokens, load: 'on-demand' })
    expect(turn.cachedTokens).toBeGreaterThanOrEqual(before.kv.stored?.tokens ?? Number.NaN)
    await client.remove(created.id)
  })

  test('shorter than a chunk is not stored, and says why', async () => {
    const client = sessionClient(stack())
    const created = await client.create('a short prompt')

    const { kv } = await client.settled(created.id, 1)
    const second = await client.use(created.id, 'a short prompt, and more')

    expect(kv).toMatchObject({ stored: null, note: 'too_short' })
    expect(second.cache).toBe('none; reason=too_short')
    await client.remove(created.id)
  })

  test('whose prompt the pod holds already is stored as well', async () => {
    const client = sessionClient(stack())
    const prompt = freshPrompt(450)
    const first = await client.create(prompt)
    await client.settled(first.id, 1)

    const second = await client.create(prompt, { headers: { 'routing-strategy': 'session-affinity' } })
    const { kv } = await client.settled(second.id, 1)

    expect(kv.stored?.tokens).toBe((await client.view(first.id)).kv.stored?.tokens)
    await client.remove(first.id)
    await client.remove(second.id)
  })
})

describe('a conversation of ten turns that changes pods with every turn', () => {
  test('hits its KV at every turn', async () => {
    const client = sessionClient(stack())
    let prompt = freshPrompt(420)
    const created = await client.create(prompt)
    let before = await client.settled(created.id, 1)

    const hits: boolean[] = []
    for (let turn = 2; turn <= 10; turn += 1) {
      prompt += ` ${freshPrompt(60)}`
      const { cache, cachedTokens } = await client.use(created.id, prompt, { headers: anywhere })
      const known = before.kv.stored?.tokens ?? Number.NaN
      hits.push((readHit(cache)?.tokens ?? 0) >= known && cachedTokens >= known)
      before = await client.settled(created.id, turn)
    }

    expect(hits).toEqual(Array(9).fill(true))
    expect(before.kv.stored?.tokens).toBeGreaterThan(700)
    await client.remove(created.id)
  })
})

describe('every API, streamed or not', () => {
  const text = freshPrompt(450)
  const flows = apis.flatMap((api: Api) =>
    [false, true].map((streamed) => ({ name: `${api.name}, ${streamed ? 'streamed' : 'whole'}`, api, streamed })),
  )
  /** The SDK as a user of vLLM sets it up: the model's name is the fleet's. */
  const sdk = (): OpenAI =>
    new OpenAI({
      baseURL: `${stack().url}/v1`,
      apiKey: 'test-key',
      maxRetries: 0,
      fetch: (input, init) =>
        fetch(
          input,
          typeof init?.body === 'string'
            ? { ...init, body: init.body.replace('"tiny-random"', `"${vllmFleet().servedModelName}"`) }
            : init,
        ),
    })

  test.each(flows)('$name', async ({ name, api, streamed }) => {
    const client = sdk()
    const own = sessionClient(stack())
    const conversation: Conversation = [{ role: 'user', text: `${name} ${text}` }]
    const created = await api.create(client, { conversation, streamed })
    const id = sessionIdOf(created)
    const { kv } = await own.settled(id, 1)

    const next: Conversation = [
      ...conversation,
      { role: 'assistant', text: created.text },
      { role: 'user', text: 'and then?' },
    ]
    const used = await api.send(client, { conversation: next, streamed, headers: { 'x-session-id': id } })

    expect(kv.stored?.tokens).toBeGreaterThan(0)
    expect(readHit(used.headers.get('x-context-cache') ?? '')).toMatchObject({ tier: 'gpu' })
    expect(used.usage?.cached).toBeGreaterThanOrEqual(kv.stored?.tokens ?? Number.NaN)
    await own.remove(id)
  })
})
