import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { eventually } from '../../support/eventually.ts'
import { createLatch } from '../../support/latch.ts'
import { metric } from '../support/metrics.ts'
import { create, untilTurns } from '../support/sessions.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const { pod, stack } = useScriptedStack({ store: 'redis' })

test('twenty creates with one Idempotency-Key at once make one session', async () => {
  const before = await metric(stack, 'sessions_created_total')

  const answers = await Promise.all(
    Array.from({ length: 20 }, () => create(stack, { headers: { 'idempotency-key': 'key' } })),
  )

  expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(200))
  const [id = '', ...others] = new Set(answers.map((answer) => answer.headers.get('x-session-id') ?? ''))
  expect(others).toEqual([])
  expect(await metric(stack, 'sessions_created_total')).toBe(before + 1)
  await untilTurns(stack, id, 20)
})

describe('an SDK that retries a create', () => {
  const lastTries = (count: number) =>
    pod
      .requests()
      .slice(-count)
      .map(({ headers }) => headers['x-stainless-retry-count'])

  const sdk = (options: { readonly fetch?: typeof fetch } = {}): OpenAI =>
    new OpenAI({
      baseURL: `${stack.url}/v1`,
      apiKey: 'test-key',
      maxRetries: 2,
      defaultHeaders: { 'x-session-ttl': '60' },
      ...options,
    })

  const ask = (client: OpenAI, text: string) =>
    client.completions.create({ model: 'scripted', prompt: text }).withResponse()

  test('finds the session of the first try whose response was lost', async () => {
    const before = await metric(stack, 'sessions_created_total')
    const lost: (string | null)[] = []
    const losingTheFirst: typeof fetch = async (...request) => {
      const response = await fetch(...request)
      if (lost.length > 0) return response
      await response.arrayBuffer()
      lost.push(response.headers.get('x-session-id'))
      throw new TypeError('the connection was lost')
    }

    const { response } = await ask(sdk({ fetch: losingTheFirst }), 'response lost')

    expect(lost).toEqual([expect.stringMatching(/^ctx_/)])
    expect(response.headers.get('x-session-id')).toBe(lost[0])
    expect(await metric(stack, 'sessions_created_total')).toBe(before + 1)
  })

  test('ends with one session after a first try that timed out', async () => {
    const before = await metric(stack, 'sessions_active')
    // The pod never responds; the client gives up as soon as its first try has arrived there.
    const arrived = createLatch()
    pod.next(() => arrived.open())
    const givingUpOnce: typeof fetch = (input, init) => {
      if (new Headers(init?.headers).get('x-stainless-retry-count') !== '0') return fetch(input, init)
      const leaving = new AbortController()
      void arrived.opened.then(() => leaving.abort())
      return fetch(input, { ...init, signal: leaving.signal })
    }

    const { response } = await ask(sdk({ fetch: givingUpOnce }), 'timed out')

    const id = response.headers.get('x-session-id') ?? ''
    expect(lastTries(2)).toEqual(['0', '1'])
    await untilTurns(stack, id, 1)
    await eventually(async () => expect(await metric(stack, 'sessions_active')).toBe(before + 1))
  })
})
