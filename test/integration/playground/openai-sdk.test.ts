// The unmodified OpenAI SDK on the three interfaces.

import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import OpenAI, { BadRequestError, NotFoundError } from 'openai'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'

const model = 'tiny-random'

describe('the OpenAI SDK', () => {
  let engine: RunningEngine
  let openai: OpenAI
  beforeAll(async () => {
    const kvDirectory = await mkdtemp(join(tmpdir(), 'openai-sdk-'))
    const extraArguments = ['--log-level', 'warn']
    engine = await startEngine({ name: 'sdk', kvDirectory, slots: 2, contextTokensPerSlot: 2048, extraArguments })
    openai = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 })
  }, 300_000)
  afterAll(() => engine.child.stop())

  test('responds, and streams the same in named events', async () => {
    const request = { model, input: 'Tell me more.', instructions: 'Be brief.', max_output_tokens: 20, temperature: 0 }
    const whole = await openai.responses.create(request)
    expect(whole).toMatchObject({
      object: 'response',
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output_text: expect.stringMatching(/^[a-z ,.]{20}$/),
      usage: { output_tokens: 20 },
    })
    const events = []
    for await (const event of await openai.responses.create({ ...request, stream: true })) events.push(event)
    const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []))
    const completed = events.flatMap((event) => (event.type === 'response.completed' ? [event.response] : []))
    const inputTokens = whole.usage?.input_tokens ?? 0
    expect(events.flatMap(({ type }) => (type === 'response.output_text.delta' ? [] : [type]))).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()])
    expect(deltas.join('')).toBe(whole.output_text)
    expect(completed).toMatchObject([
      { usage: { input_tokens: inputTokens, input_tokens_details: { cached_tokens: inputTokens - 1 } } },
    ])
  })

  test('meets its own error classes', async () => {
    const unknown = openai.completions.create({ model: 'gpt-9', prompt: 'a' })
    await expect(unknown).rejects.toBeInstanceOf(NotFoundError)
    await expect(unknown).rejects.toMatchObject({ status: 404, type: 'not_found_error' })
    const long = openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'x'.repeat(3000) }] })
    await expect(long).rejects.toBeInstanceOf(BadRequestError)
    await expect(long).rejects.toMatchObject({ type: 'invalid_request_error' })
  })
})
