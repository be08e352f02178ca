import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { call, model } from '../support/client.ts'
import { createdId, untilStored, view } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { listed } from './support.ts'

let sessionId: string
const stack = useStack({ pods: embeddedPods({ count: 1 }) }, async (started) => {
  sessionId = await createdId(started, { body: { model, prompt: 'a prompt', max_tokens: 2 } })
  await untilStored(started, sessionId, 1)
})

/** What the engine says when it is asked without Envoy and gateway. */
const ofEngine = (path: string, rawBody: string) => call(`http://${stack.pods[0]?.address}${path}`, { rawBody })

const body = (members: Record<string, unknown>): string => JSON.stringify({ model, ...members })

const mistakes = [
  { name: 'a trailing comma', path: '/v1/completions', rawBody: `{"model":"${model}","prompt":"x",}` },
  { name: 'no model', path: '/v1/completions', rawBody: '{"prompt":"x"}' },
  { name: 'no prompt', path: '/v1/completions', rawBody: body({}) },
  { name: 'no message', path: '/v1/chat/completions', rawBody: body({ messages: [] }) },
  { name: 'the prompt of another API', path: '/v1/responses', rawBody: body({ prompt: 'x' }) },
  { name: 'a temperature out of range', path: '/v1/completions', rawBody: body({ prompt: 'x', temperature: 9 }) },
  { name: 'megabytes of text', path: '/v1/completions', rawBody: body({ prompt: 'x'.repeat(7_000_000) }) },
  { name: 'more tokens than there are', path: '/v1/completions', rawBody: body({ prompt: 'x'.repeat(5000) }) },
  {
    name: 'depth',
    path: '/v1/completions',
    rawBody: `{"model":"${model}","prompt":${'['.repeat(100)}${']'.repeat(100)}}`,
  },
]

describe('a mistake in a turn', () => {
  test.each(mistakes)('gets the engine’s own error: $name', async ({ path, rawBody }) => {
    const before = await view(stack, sessionId)
    const direct = await ofEngine(path, rawBody)

    const response = await call(`${stack.url}${path}`, { headers: { 'x-session-id': sessionId }, rawBody })

    expect(direct.status).toBe(400)
    expect([response.status, response.text]).toEqual([direct.status, direct.text])
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-session-id')).toBeNull()
    expect(response.headers.get('x-context-cache')).toBeNull()
    expect(await view(stack, sessionId)).toEqual(before)
  })

  test('adds no turn, and the session keeps its KV', async () => {
    const headers = { 'x-session-id': sessionId }
    await call(`${stack.url}/v1/completions`, { headers, rawBody: body({}) })

    const response = await call(`${stack.url}/v1/completions`, {
      headers,
      body: { model, prompt: 'a prompt, and then', max_tokens: 2 },
    })

    // From the store when Envoy has not reported the end of the mistake yet, which holds the session's slot until then.
    expect(response.headers.get('x-context-cache')).toMatch(/^hit; /)
    await eventually(async () => {
      const { body: seen } = await call(`${stack.url}/v1/context/${sessionId}`)
      expect(seen).toMatchObject({ turns: 2, kv: { stored: { turn: 2 } } })
    })
  })
})

describe('a mistake in a create', () => {
  const creating = [
    { name: 'a prompt that is too long', path: '/v1/completions', rawBody: body({ prompt: 'x'.repeat(5000) }) },
    { name: 'a role that is not a string', path: '/v1/chat/completions', rawBody: body({ messages: [{ role: 1 }] }) },
    { name: 'an unknown input', path: '/v1/responses', rawBody: body({ input: [{ type: 'x' }] }) },
  ]

  test.each(creating)('that only the engine finds leaves no session: $name', async ({ path, rawBody }) => {
    const headers = { authorization: 'Bearer without-sessions' }
    const direct = await ofEngine(path, rawBody)
    const filesBefore = await stack.kvFiles()

    const byContext = await call(`${stack.url}/v1/context`, { headers, rawBody })
    const byTtl = await call(`${stack.url}${path}`, { headers: { ...headers, 'x-session-ttl': '60' }, rawBody })

    expect(direct.status).toBe(400)
    for (const response of [byContext, byTtl]) {
      expect([response.status, response.text]).toEqual([direct.status, direct.text])
      expect(response.headers.get('x-session-id')).toBeNull()
    }
    await eventually(async () => expect(await listed(stack, headers)).toEqual([]))
    expect(filesBefore).toEqual(expect.arrayContaining([...(await stack.kvFiles())]))
  })
})
