import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type OpenAI from 'openai'
import { eventually } from '../../support/eventually.ts'
import { call, openai } from '../support/client.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { metric } from '../support/metrics.ts'
import type { PodScript } from '../support/scripted-pod.ts'
import { streamedResponse } from '../support/scripted-responses.ts'
import { createdId, look, remove, untilTurns } from '../support/sessions.ts'
import { fixture } from './shared-fixture.ts'
import { anyResponse, someBody } from './support.ts'

const { stack, pods } = fixture

const readAll = async (stream: AsyncIterable<OpenAI.Completion>): Promise<string> => {
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? ''
  return text
}

const gone = () => metric(stack, 'turns_total', { outcome: 'gone' })

describe('a session that is deleted', () => {
  /** Lets the pods end the streams that they have begun. */
  let released: Latch
  beforeEach(() => {
    released = createLatch()
  })
  afterEach(() => {
    released.open()
    for (const pod of pods) pod.otherwise(anyResponse)
  })

  /** Streams the first event, and the others after the release. */
  const halting: PodScript = async (_request, reply) => {
    const [first = '', ...others] = streamedResponse('/v1/completions')
    reply.write(first)
    await released.opened
    for (const piece of others) reply.write(piece)
    reply.end()
  }

  const beginStream = (headers: Record<string, string>) => {
    for (const pod of pods) pod.otherwise(halting)
    return openai(stack.url)
      .completions.create({ ...someBody, stream: true }, { headers })
      .withResponse()
  }

  test.each([
    {
      name: 'in the middle of a turn',
      begin: async () => {
        const id = await createdId(stack)
        await untilTurns(stack, id, 1)
        return beginStream({ 'x-session-id': id })
      },
    },
    { name: 'in the middle of the turn that creates it', begin: () => beginStream({ 'x-session-ttl': '600' }) },
  ])('$name stays deleted, and the response arrives whole', async ({ begin }) => {
    const before = await gone()
    const { data, response } = await begin()
    const id = response.headers.get('x-session-id') ?? ''
    const reader = readAll(data)

    const deleted = await remove(stack, id)
    released.open()

    expect([deleted.status, deleted.body]).toEqual([200, { id, object: 'context.deleted', deleted: true }])
    expect(await reader).toBe('one two')
    await eventually(async () => expect(await gone()).toBe(before + 1))
    expect((await remove(stack, id)).status).toBe(404)
    expect((await look(stack, id)).status).toBe(404)
    expect((await call(`${stack.url}/v1/context`)).text).not.toContain(id)
  })

  test('twenty times at once is deleted once', async () => {
    const id = await createdId(stack)

    const responses = await Promise.all(Array.from({ length: 20 }, () => remove(stack, id)))

    const statuses = responses.map(({ status }) => status).sort((left, right) => left - right)
    expect(statuses).toEqual([200, ...Array(19).fill(404)])
  })
})
