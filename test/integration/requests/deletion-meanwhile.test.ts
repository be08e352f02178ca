import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type OpenAI from 'openai'
import { call, openai } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { streamedAnswer } from '../support/scripted-answers.ts'
import type { PodScript } from '../support/scripted-pod.ts'
import { type Bench, createSession, look, someBody, startBench } from './support.ts'

jest.setTimeout(30_000)

let bench: Bench
let client: OpenAI

beforeAll(async () => {
  bench = await startBench()
  client = openai(bench.stack.url)
}, 120_000)
afterAll(async () => {
  await bench?.stop()
})

/** Lets the pods end the streams that they have begun. */
let release: () => void
let released: Promise<void>
beforeEach(() => {
  released = new Promise((resolve) => {
    release = resolve
  })
})
afterEach(() => release())

/** Streams the first event, and the others when it is told to. */
const halting: PodScript = async (_request, reply) => {
  const [first = '', ...others] = streamedAnswer('/v1/completions')
  reply.write(first)
  await released
  for (const piece of others) reply.write(piece)
  reply.end()
}

const haltNext = (): void => {
  for (const pod of bench.pods) pod.otherwise(halting)
}

const streamed = { ...someBody, stream: true } as const

const readAll = async (stream: AsyncIterable<OpenAI.Completion>): Promise<string> => {
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? ''
  return text
}

const turnsEnded = async (outcome: string): Promise<number> => {
  const page = await call(`${bench.stack.gateway().adminUrl}/metrics`)
  return Number(
    new RegExp(`^context_cache_turns_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(page.text)?.[1] ?? 0,
  )
}

const remove = (id: string) => call(`${bench.stack.url}/v1/context/${id}`, { method: 'DELETE' })

describe('a session that is deleted', () => {
  test.each([
    {
      name: 'in the middle of a turn',
      begin: async () => {
        const id = await createSession(bench.stack)
        await eventually(async () => expect((await look(bench.stack, id)).turns).toBe(1))
        haltNext()
        return client.completions.create(streamed, { headers: { 'x-session-id': id } }).withResponse()
      },
    },
    {
      name: 'in the middle of the turn that creates it',
      begin: async () => {
        haltNext()
        return client.completions.create(streamed, { headers: { 'x-session-ttl': '600' } }).withResponse()
      },
    },
  ])('$name stays deleted, and the answer still comes whole', async ({ begin }) => {
    const gone = await turnsEnded('gone')
    const { data, response } = await begin()
    const id = response.headers.get('x-session-id') ?? ''
    const reader = readAll(data)

    const deleted = await remove(id)
    release()

    expect([deleted.status, deleted.body]).toEqual([200, { id, object: 'context.deleted', deleted: true }])
    expect(await reader).toBe('one two')
    await eventually(async () => expect(await turnsEnded('gone')).toBe(gone + 1))
    expect((await remove(id)).status).toBe(404)
    expect((await call(`${bench.stack.url}/v1/context/${id}`)).status).toBe(404)
    expect((await call(`${bench.stack.url}/v1/context`)).text).not.toContain(id)
  })

  test('twenty times at once is deleted once', async () => {
    for (const pod of bench.pods) pod.otherwise((_request, reply) => reply.json(200, {}))
    const id = await createSession(bench.stack)

    const answers = await Promise.all(Array.from({ length: 20 }, () => remove(id)))

    const statuses = answers.map((answer) => answer.status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 404)).toHaveLength(19)
  })
})
