import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { model, postAndLeave } from '../support/client.ts'
import { readMetric } from '../support/metrics.ts'
import { cacheLine, create, createdId, prompt, untilStored, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { waiting } from './support.ts'

const conversations = ['one', 'two', 'three', 'four', 'five', 'six']

const bodyOf = (topic: string, tokens = 2) => ({ model, prompt: `${topic}: ${prompt(60)}`, max_tokens: tokens })

describe('more conversations than slots', () => {
  const slots = 2
  const stack = useStack({ pods: embeddedPods({ count: 1, slots }) })

  test('first turns and later ones wait for a slot, so that all have their KV, and nothing waits in the end', async () => {
    const ids = await Promise.all(conversations.map((topic) => createdId(stack, { body: bodyOf(topic) })))
    await Promise.all(ids.map((id) => untilStored(stack, id, 1)))
    const turns = await Promise.all(
      ids.map((id, index) => use(stack, id, { body: bodyOf(conversations[index] ?? '') })),
    )
    for (const turn of turns) expect(cacheLine(turn)).toMatch(/^hit; tier=(gpu|store); tokens=\d+/)
    expect(await waiting(stack)).toBe(0)
    const waits = await readMetric(stack, 'admission_wait_seconds_count')
    expect(waits).toMatchObject({ 'kind="prefill",outcome="admitted"': expect.any(Number) })
    expect(waits['kind="prefill",outcome="no_room"'] ?? 0).toBe(0)
  })

  test('a client that leaves while its turn waits takes no slot', async () => {
    const long = Promise.all(conversations.slice(0, slots).map((topic) => create(stack, { body: bodyOf(topic, 200) })))
    await Promise.all(
      conversations.map((topic) =>
        postAndLeave(`${stack.url}/v1/completions`, bodyOf(topic), { headers: { 'x-session-ttl': '60' }, afterMs: 50 }),
      ),
    )
    await eventually(async () => (await waiting(stack)) === 0)
    for (const response of await long) expect(response.status).toBe(200)
    const id = await createdId(stack, { body: bodyOf('afterwards') })
    await untilStored(stack, id, 1)
    expect(cacheLine(await use(stack, id, { body: bodyOf('afterwards') }))).toMatch(/^hit; /)
  })
})
