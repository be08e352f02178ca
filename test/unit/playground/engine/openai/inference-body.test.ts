import { describe, expect, test } from '@jest/globals'
import { type InferenceApi, parseInferenceBody } from '../../../../../playground/engine/openai/inference-body.ts'

type Row = readonly [name: string, api: InferenceApi, body: Record<string, unknown>, expected: Record<string, unknown>]

const chat = (content: unknown) => ({ model: 'm', messages: [{ role: 'user', content }] })

describe('an inference body', () => {
  test.each<Row>([
    ['text', 'completions', { prompt: 'a' }, { prompt: { kind: 'text', text: 'a' } }],
    ['one text in a list', 'completions', { prompt: ['a'] }, { prompt: { kind: 'text', text: 'a' } }],
    ['token ids', 'completions', { prompt: [1, 2] }, { prompt: { kind: 'tokens', tokens: [1, 2] } }],
    ['one token id', 'completions', { prompt: [1] }, { prompt: { kind: 'tokens', tokens: [1] } }],
    ['token ids in a list', 'completions', { prompt: [[1, 2]] }, { prompt: { kind: 'tokens', tokens: [1, 2] } }],
    ['max_tokens', 'completions', { prompt: 'a', max_tokens: 5 }, { maxTokens: 5 }],
    [
      'nulls as absent',
      'completions',
      { prompt: 'a', max_tokens: null, stop: null, stream: null, seed: null, n: null },
      { maxTokens: undefined, stops: [], stream: false },
    ],
    ['one stop', 'completions', { prompt: 'a', stop: 'x' }, { stops: ['x'] }],
    ['several stops', 'completions', { prompt: 'a', stop: ['x', 'y'] }, { stops: ['x', 'y'] }],
    [
      'sampling',
      'completions',
      { prompt: 'a', temperature: 0, top_p: 0.5, top_k: 3, min_p: 0.1, seed: 7 },
      { temperature: 0, topP: 0.5, topK: 3, minP: 0.1, seed: 7 },
    ],
    ['all tokens as top_k', 'completions', { prompt: 'a', top_k: -1 }, { topK: undefined }],
    ['a slot', 'completions', { prompt: 'a', id_slot: 2 }, { slotId: 2 }],
    ['any slot', 'completions', { prompt: 'a', id_slot: -1 }, { slotId: undefined }],
    ['a salt', 'completions', { prompt: 'a', cache_salt: 's' }, { cacheSalt: 's' }],
    [
      'usage in a stream',
      'completions',
      { prompt: 'a', stream: true, stream_options: { include_usage: true } },
      { stream: true, includeUsage: true },
    ],
    ['fields of others', 'completions', { prompt: 'a', kv_transfer_params: {}, user: 'u' }, { model: 'm' }],
    ['messages', 'chat', chat('hi'), { prompt: { kind: 'messages', messages: [{ role: 'user', content: 'hi' }] } }],
    [
      'text parts',
      'chat',
      chat([
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ]),
      { prompt: { messages: [{ content: 'ab' }] } },
    ],
    ['no content', 'chat', chat(null), { prompt: { messages: [{ content: '' }] } }],
    [
      'max_completion_tokens first',
      'chat',
      { ...chat('a'), max_tokens: 1, max_completion_tokens: 2 },
      { maxTokens: 2 },
    ],
    [
      'an input text',
      'responses',
      { input: 'hi' },
      { prompt: { messages: [{ role: 'user', content: 'hi' }] }, includeUsage: true },
    ],
    [
      'instructions',
      'responses',
      { input: 'hi', instructions: 'be brief' },
      { prompt: { messages: [{ role: 'system', content: 'be brief' }, { role: 'user' }] }, instructions: 'be brief' },
    ],
    [
      'input items',
      'responses',
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'a' }] }] },
      { prompt: { messages: [{ role: 'user', content: 'a' }] } },
    ],
    [
      'an output item sent back',
      'responses',
      {
        input: [
          {
            id: 'msg_1',
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text: 'a', annotations: [] }],
          },
        ],
      },
      { prompt: { messages: [{ role: 'assistant', content: 'a' }] } },
    ],
    ['max_output_tokens', 'responses', { input: 'hi', max_output_tokens: 3 }, { maxTokens: 3 }],
  ])('may hold %s', (_, api, fields, expected) => {
    expect(parseInferenceBody(api, { model: 'm', ...fields })).toMatchObject({
      kind: 'parsed',
      body: { api, ...expected },
    })
  })

  test.each<Row>([
    [
      'a model',
      'completions',
      { model: undefined, prompt: 'a' },
      { param: 'model', code: 'missing_required_parameter' },
    ],
    ['a prompt', 'completions', {}, { param: 'prompt', code: 'missing_required_parameter' }],
    ['messages', 'chat', {}, { param: 'messages', code: 'missing_required_parameter' }],
    ['an input', 'responses', {}, { param: 'input', code: 'missing_required_parameter' }],
    ['a model name', 'completions', { model: 5, prompt: 'a' }, { param: 'model', code: 'invalid_value' }],
    ['some messages', 'chat', { messages: [] }, { param: 'messages' }],
    ['a known role', 'chat', { messages: [{ role: 'wizard', content: 'a' }] }, { param: 'messages.0.role' }],
    ['text in its parts', 'chat', chat([{ type: 'image_url', image_url: {} }]), { param: 'messages.0.content' }],
    ['one prompt', 'completions', { prompt: ['a', 'b'] }, { param: 'prompt' }],
    ['token ids that are whole', 'completions', { prompt: [1.5] }, { param: 'prompt' }],
    ['a limit above zero', 'completions', { prompt: 'a', max_tokens: 0 }, { param: 'max_tokens' }],
    ['a temperature of at most 2', 'completions', { prompt: 'a', temperature: 3 }, { param: 'temperature' }],
    ['at most four stops', 'completions', { prompt: 'a', stop: ['1', '2', '3', '4', '5'] }, { param: 'stop' }],
    ['one choice', 'chat', { ...chat('a'), n: 2 }, { param: 'n' }],
    ['no echo', 'completions', { prompt: 'a', echo: true }, { param: 'echo' }],
    [
      'input items that are messages',
      'responses',
      { input: [{ type: 'function_call_output', call_id: 'c', output: '' }] },
      { param: 'input' },
    ],
    [
      'no earlier response',
      'responses',
      { input: 'a', previous_response_id: 'resp_1' },
      { param: 'previous_response_id' },
    ],
  ])('must hold %s', (_, api, fields, expected) => {
    expect(parseInferenceBody(api, { model: 'm', ...fields })).toMatchObject({
      kind: 'invalid',
      error: { status: 400, error: { type: 'invalid_request_error', ...expected } },
    })
  })
})
