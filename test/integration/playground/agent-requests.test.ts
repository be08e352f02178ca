// What coding agents send to the three chat interfaces, to an engine as `make run` starts it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'
import { dialects, instructions, schema } from './agent-dialects.ts'

const contextTokens = 4096
const apiKey = 'key-of-the-pod'
let folder = ''
let engine: RunningEngine

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agents-'))
  engine = await startEngine({
    name: 'pod',
    kvDirectory: folder,
    slots: 2,
    contextTokensPerSlot: contextTokens,
    vocabulary: 'words',
    extraArguments: ['--log-level', 'warn', '--api-key', apiKey],
  })
}, 300_000)
afterAll(async () => {
  await engine.child.stop()
  await rm(folder, { recursive: true, force: true })
})

const post = (path: string, body: object, headers: Record<string, string> = { 'x-api-key': apiKey }) =>
  fetch(engine.url + path, { method: 'POST', headers, body: JSON.stringify({ model: 'tiny-random', ...body }) })
const answer = async (path: string, body: object) => {
  const response = await post(path, body)
  const text = await response.text()
  expect([response.status, text]).toEqual([200, text])
  return JSON.parse(text)
}
const erase = () => post('/slots/0?action=erase', {})

describe.each(Object.entries(dialects))('%s', (_name, { path, body, entries, first, later, read }) => {
  const turn = async (history: readonly object[]) =>
    read((await answer(path, { ...body, id_slot: 0, [entries]: history })) as never)

  test('a short answer ends by itself, and the next turn computes only what is behind it', async () => {
    await erase()
    const cold = await turn(first)
    expect([cold.cached, cold.output]).toEqual([0, 64])
    expect(cold.text).toMatch(/^[a-z]+( [a-z]+){63}$/)
    const history = [...first, ...later(cold.text)]
    const second = await turn(history)
    // The last token of an answer is not computed when it ends.
    expect(second.cached).toBe(cold.prompt + cold.output - 1)
    const third = await turn([...history, ...later(second.text)])
    expect(third.cached).toBe(second.prompt + second.output - 1)
  })

  test('what the tools are counts', async () => {
    const many = await turn(first)
    const { prompt } = read((await answer(path, { ...body, tools: [], [entries]: first })) as never)
    expect(many.prompt).toBeGreaterThan(prompt)
  })
})

describe('the engine, as `make run` starts it', () => {
  test.each([
    ['English', instructions],
    ['JSON', JSON.stringify({ name: 'bash', description: 'Runs a command in the shell.', parameters: schema })],
  ])('counts some three and more characters of %s a token', async (_name, content) => {
    const { tokens } = await answer('/tokenize', { content })
    expect(content.length / tokens.length).toBeGreaterThan(3)
  })

  test('cold, reused and restored KV lead to the same answer', async () => {
    const body = { prompt: instructions.repeat(8), temperature: 0 }
    await erase()
    const cold = await answer('/v1/completions', { ...body, id_slot: 0 })
    await answer('/slots/0?action=save', { filename: 'a.kv' })
    await answer('/slots/1?action=restore', { filename: 'a.kv' })
    for (const id_slot of [0, 1]) {
      const { choices, usage } = await answer('/v1/completions', { ...body, id_slot })
      expect(choices).toEqual(cold.choices)
      expect(usage.prompt_tokens_details.cached_tokens).toBe(cold.usage.prompt_tokens - 1)
    }
  })

  test('an answer ends where the context does', async () => {
    const prompt = Array.from({ length: contextTokens - 5 }, (_, index) => index % 250)
    const { choices, usage } = await answer('/v1/completions', { prompt, max_tokens: 32_000 })
    expect([choices[0].finish_reason, usage.total_tokens]).toEqual(['length', contextTokens])
  })

  test('an answer that may not end by itself goes on', async () => {
    const body = { prompt: 'On and on', max_tokens: 70 }
    const [ended, longer] = [
      await answer('/v1/completions', body),
      await answer('/v1/completions', { ...body, ignore_eos: true }),
    ]
    expect([ended, longer].map(({ choices, usage }) => [choices[0].finish_reason, usage.completion_tokens])).toEqual([
      ['stop', 64],
      ['length', 70],
    ])
  })

  test.each(['GET', 'HEAD'])('%s / asks for no key', async (method) => {
    expect((await fetch(engine.url, { method })).status).toBe(200)
  })

  test('a body of a megabyte is read', async () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(1_000_000) } }
    expect(await answer('/v1/messages/count_tokens', { messages: [{ role: 'user', content: [image] }] })).toEqual({
      input_tokens: expect.any(Number),
    })
  })
})

describe('POST /v1/messages', () => {
  const path = '/v1/messages'
  const hello = { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 3 }

  test('streams as Anthropic does', async () => {
    await erase()
    const { input_tokens } = await answer('/v1/messages/count_tokens', hello)
    const stream = await (await post(path, { ...hello, id_slot: 0, stream: true })).text()
    const events = stream.split('\n\n').flatMap((event) => {
      const [, name, data = ''] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? []
      return name === undefined ? [] : [{ ...JSON.parse(data), name }]
    })
    const usage = { input_tokens, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
    const message = { role: 'assistant', content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } }
    const delta = {
      name: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: expect.stringMatching(/^ ?[a-z]+$/) },
    }
    expect(events).toMatchObject([
      { name: 'message_start', message },
      { name: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { name: 'ping' },
      delta,
      delta,
      delta,
      { name: 'content_block_stop', index: 0 },
      { name: 'message_delta', delta: { stop_reason: 'max_tokens' }, usage: { ...usage, output_tokens: 3 } },
      { name: 'message_stop' },
    ])
    expect(events.filter(({ name, type }) => name !== type)).toEqual([])
  })

  test('the line that differs in every request of Claude Code is no part of the prompt', async () => {
    const ask = (hash: string) =>
      answer(path, {
        ...hello,
        id_slot: 0,
        system: [
          { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cch=${hash};` },
          { type: 'text', text: instructions },
        ],
      })
    const { usage } = await ask('00000')
    const prompt = usage.input_tokens + usage.cache_read_input_tokens
    expect((await ask('f3a91')).usage).toMatchObject({ input_tokens: 1, cache_read_input_tokens: prompt - 1 })
    expect(await answer(`${path}/count_tokens`, { ...hello, system: instructions })).toEqual({ input_tokens: prompt })
  })

  test('cache_prompt: false reuses nothing', async () => {
    const body = { ...hello, id_slot: 0 }
    await answer(path, body)
    expect((await answer(path, { ...body, cache_prompt: false })).usage).toMatchObject({ cache_read_input_tokens: 0 })
  })

  test.each([
    ['no messages', {}, 400, 'invalid_request_error', /^'messages' is missing\.$/],
    ['a wrong slot', { ...hello, id_slot: 9 }, 400, 'invalid_request_error', /^There is no slot 9\.$/],
    [
      'a prompt that is too long',
      { messages: [{ role: 'user', content: 'x '.repeat(contextTokens) }] },
      400,
      'invalid_request_error',
      /exceeds the context of 4096\.$/,
    ],
    ['an unknown model', { ...hello, model: 'x' }, 404, 'not_found_error', /^The model 'x' does not exist\.$/],
  ])('%s is refused in the form of Anthropic', async (_name, body, status, type, message) => {
    const response = await post(path, body)
    const error = { type, message: expect.stringMatching(message) }
    expect([response.status, await response.json()]).toEqual([status, { type: 'error', error }])
  })

  test('a wrong key is refused in the form of Anthropic', async () => {
    const response = await post(path, hello, { 'x-api-key': 'wrong' })
    const error = { type: 'authentication_error', message: 'Invalid API Key' }
    expect([response.status, await response.json()]).toEqual([401, { type: 'error', error }])
  })
})
