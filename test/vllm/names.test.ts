import { randomUUID } from 'node:crypto'
import { describe, expect, jest, test } from '@jest/globals'
import { call } from '../integration/support/client.ts'
import { vllmFleet } from './support/fleet.ts'
import { freshPrompt } from './support/prompts.ts'
import { anywhere, readHit, sessionClient } from './support/session.ts'
import { useVllmStack } from './support/vllm-stack.ts'

jest.setTimeout(180_000)

const stack = useVllmStack()

interface Said {
  readonly role: 'user' | 'assistant'
  readonly text: string
}

/** How a client sends a conversation. */
interface Shape {
  readonly client: string
  readonly path: string
  readonly named: (name: string) => Readonly<Record<string, string>>
  readonly body: (said: readonly Said[]) => Readonly<Record<string, unknown>>
}

const limits = { stream: true, temperature: 0 } as const

const shapes: readonly Shape[] = [
  {
    client: 'Codex',
    path: '/v1/responses',
    named: (name) => ({ 'session-id': name, 'thread-id': name, 'x-client-request-id': randomUUID() }),
    body: (said) => ({
      ...limits,
      store: false,
      max_output_tokens: 2,
      input: said.map(({ role, text }) => {
        const type = role === 'user' ? 'input_text' : 'output_text'
        return { type: 'message', role, content: [{ type, text }] }
      }),
    }),
  },
  {
    client: 'Claude Code',
    path: '/v1/messages?beta=true',
    named: (name) => ({ 'x-claude-code-session-id': name, 'anthropic-version': '2023-06-01' }),
    body: (said) => ({
      ...limits,
      max_tokens: 2,
      // The breakpoint moves with every turn, and the first line of the system prompt changes.
      messages: said.map(({ role, text }, index) => {
        const cached = index === said.length - 1 ? { cache_control: { type: 'ephemeral' } } : {}
        return { role, content: [{ type: 'text', text, ...cached }] }
      }),
      system: [{ type: 'text', text: `x-anthropic-billing-header: cch=${randomUUID().slice(0, 5)};` }],
    }),
  },
  {
    client: 'OpenCode',
    path: '/v1/chat/completions',
    named: (name) => ({ 'x-session-affinity': name, 'x-session-id': name }),
    body: (said) => ({
      ...limits,
      max_tokens: 2,
      stream_options: { include_usage: true },
      messages: said.map(({ role, text }) => ({ role, content: text })),
    }),
  },
]

describe.each(shapes)('$client', ({ path, named, body }) => {
  const send = async (name: string, said: readonly Said[], headers: Readonly<Record<string, string>> = {}) => {
    const answer = await call(`${stack().url}${path}`, {
      headers: { ...named(name), ...headers },
      body: { model: vllmFleet().servedModelName, ...body(said) },
    })
    expect({ status: answer.status, text: answer.status === 200 ? '' : answer.text }).toEqual({ status: 200, text: '' })
    return { id: answer.headers.get('x-session-id') ?? '', cache: answer.headers.get('x-context-cache') ?? '' }
  }

  test('finds its conversation by the name it sends, also in the other pod, beside another prompt', async () => {
    const client = sessionClient(stack())
    const name = `ses_${randomUUID()}`
    const said: Said[] = [{ role: 'user', text: freshPrompt(420) }]
    const title: Said[] = [{ role: 'user', text: `Write a title. ${freshPrompt(300)}` }]
    const first = await send(name, said)
    const other = await send(name, title)
    let settled = await client.settled(first.id, 1)

    const caches: string[] = []
    const pods = new Set([settled.kv.pod])
    for (let turn = 2; turn <= 6; turn += 1) {
      said.push({ role: 'assistant', text: 'yes' }, { role: 'user', text: 'and then?' })
      const { id, cache } = await send(name, said, anywhere)
      caches.push(cache)
      expect(id).toBe(first.id)
      settled = await client.settled(first.id, turn)
      pods.add(settled.kv.pod)
    }

    expect([first.cache, other.cache]).toEqual(['miss; reason=new_session', 'miss; reason=new_session'])
    expect(caches.filter((cache) => (readHit(cache)?.tokens ?? 0) < 256)).toEqual([])
    expect(pods.size).toBe(2)
    expect(settled.tokens.cached / settled.tokens.prompt).toBeGreaterThan(0.6)
    expect(readHit((await send(name, title)).cache)?.tokens).toBeGreaterThanOrEqual(256)
    await client.remove(first.id)
  })
})
