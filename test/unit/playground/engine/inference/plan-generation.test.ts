import { describe, expect, test } from '@jest/globals'
import { planGeneration } from '../../../../../playground/engine/inference/plan-generation.ts'
import type { InferenceBody } from '../../../../../playground/engine/openai/inference-body.ts'

const context = {
  runtime: {
    contextTokens: 100,
    vocabularySize: 256,
    longestTokenCharacters: 4,
    tokenize: (text: string) => [...Buffer.from(text)],
    tokenizeChat: () => [1, 2, 3],
  },
  slotCount: 4,
  defaultMaxTokens: 16,
}

function body(change: Partial<InferenceBody> = {}): InferenceBody {
  return {
    api: 'completions',
    model: 'm',
    prompt: { kind: 'text', text: 'abc' },
    maxTokens: undefined,
    temperature: undefined,
    topP: undefined,
    topK: undefined,
    minP: undefined,
    seed: undefined,
    stops: [],
    stream: false,
    includeUsage: false,
    slotId: undefined,
    cacheSalt: '',
    instructions: undefined,
    ...change,
  }
}

const longText = (length: number) => ({ kind: 'text', text: 'x'.repeat(length) }) as const

describe('a plan', () => {
  test.each([
    ['takes the default limit', body(), { maxTokens: 16 }],
    ['takes the request’s limit', body({ maxTokens: 97 }), { maxTokens: 97 }],
    ['cuts the default limit to the room left', body({ prompt: longText(95) }), { maxTokens: 5 }],
    ['has at least one token to answer with', body({ prompt: longText(99) }), { maxTokens: 1 }],
    ['keeps token ids', body({ prompt: { kind: 'tokens', tokens: [0, 255] } }), { tokens: [0, 255] }],
    ['renders messages', body({ prompt: { kind: 'messages', messages: [] } }), { tokens: [1, 2, 3] }],
    ['keeps the slot', body({ slotId: 3 }), { slotId: 3 }],
    ['has no salt hash without salt', body(), { saltHash: '' }],
    [
      'hashes the salt',
      body({ cacheSalt: 'abc' }),
      { saltHash: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' },
    ],
    [
      'samples like OpenAI by default',
      body({ seed: 5 }),
      { sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, seed: 5 } },
    ],
    ['makes the seed unsigned', body({ seed: -1 }), { sampling: { seed: 4_294_967_295 } }],
  ])('%s', (_, request, expected) => {
    expect(planGeneration(request, context)).toMatchObject({ kind: 'planned', plan: expected })
  })

  test('is refused without tokenizing a text that cannot fit', () => {
    const tokenize = (): readonly number[] => {
      throw new Error('the text was tokenized')
    }
    const unable = { ...context, runtime: { ...context.runtime, tokenize, tokenizeChat: tokenize } }
    const messages = [{ role: 'user', content: 'x'.repeat(401) }] as const

    for (const prompt of [longText(401), { kind: 'messages', messages } as const]) {
      expect(planGeneration(body({ prompt }), unable)).toMatchObject({
        kind: 'invalid',
        error: { status: 400, error: { code: 'context_length_exceeded' } },
      })
    }
    expect(() => planGeneration(body({ prompt: longText(400) }), unable)).toThrow('the text was tokenized')
  })

  test.each([
    [
      'a prompt that fills the context',
      body({ prompt: longText(100) }),
      { param: 'prompt', code: 'context_length_exceeded' },
    ],
    ['a limit beyond the context', body({ maxTokens: 98 }), { param: 'prompt', code: 'context_length_exceeded' }],
    [
      'too long a conversation',
      body({ api: 'chat', maxTokens: 98 }),
      { param: 'messages', code: 'context_length_exceeded' },
    ],
    [
      'too long an input',
      body({ api: 'responses', maxTokens: 98 }),
      { param: 'input', code: 'context_length_exceeded' },
    ],
    ['an empty prompt', body({ prompt: longText(0) }), { param: 'prompt', code: 'invalid_value' }],
    [
      'a token id outside the vocabulary',
      body({ prompt: { kind: 'tokens', tokens: [256] } }),
      { param: 'prompt', code: 'invalid_value' },
    ],
    ['a slot that is not there', body({ slotId: 4 }), { param: 'id_slot', code: 'invalid_value' }],
  ])('is refused for %s', (_, request, expected) => {
    expect(planGeneration(request, context)).toMatchObject({ kind: 'invalid', error: { status: 400, error: expected } })
  })
})
