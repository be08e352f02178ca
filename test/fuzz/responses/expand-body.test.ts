import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { expandBody } from '../../../src/responses/expand-body.ts'
import { readResponsesTurn } from '../../../src/responses/responses-turn.ts'
import { allSlices } from '../../support/all-slices.ts'
import { errorOf } from '../../support/error-of.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 10_000 }
const maxBytes = 100_000

const anyItem = fc.record(
  {
    type: fc.constantFrom('message', 'function_call', 'function_call_output', 'reasoning'),
    role: fc.constantFrom('user', 'assistant'),
    content: fc.oneof(
      fc.string(),
      fc.array(fc.record({ type: fc.constant('input_text'), text: fc.string() }), { minLength: 1 }),
    ),
    arguments: fc.json(),
  },
  { requiredKeys: ['type', 'content'] },
)
const anyBody = fc
  .record(
    {
      model: fc.constant('m'),
      input: fc.oneof(fc.string({ unit: 'binary' }), fc.array(anyItem)),
      previous_response_id: fc.constantFrom('resp_1', null),
      store: fc.constantFrom(true, false, null),
      conversation: fc.constant(null),
      instructions: fc.string(),
      metadata: fc.dictionary(fc.string(), fc.string()),
    },
    { requiredKeys: ['model', 'input'] },
  )
  .chain((body) => fc.shuffledSubarray(Object.entries(body), { minLength: Object.keys(body).length }))
  .map((members) => Object.fromEntries(members))

const read = (text: string) => allSlices(readResponsesTurn(Buffer.from(text), limits))
const expand = (text: string, history: readonly string[], most = maxBytes): unknown =>
  JSON.parse(
    String(
      allSlices(
        expandBody(Buffer.from(text), read(text), {
          history: history.map((json, index) => ({ id: `item_${index}`, json })),
          maxBytes: most,
        }),
      ),
    ),
  )

const listOf = (input: unknown): readonly unknown[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input as readonly unknown[])

test('the history stands in front of the new items, and all that the client did not ask of the gateway stays', () => {
  fc.assert(
    fc.property(anyBody, fc.array(anyItem), fc.nat(2), (body, history, indent) => {
      const text = JSON.stringify(body, null, indent)
      const isContinued = typeof body['previous_response_id'] === 'string'
      const wanted = {
        ...body,
        store: false,
        ...('previous_response_id' in body ? { previous_response_id: null } : {}),
        ...(isContinued ? { input: [...history, ...listOf(body['input'])] } : {}),
      }
      expect(
        expand(
          text,
          history.map((item) => JSON.stringify(item)),
        ),
      ).toEqual(JSON.parse(JSON.stringify(wanted)))
    }),
  )
})

test.each([
  ['"input":"a","background":true', 'unsupported_parameter'],
  ['"previous_response_id":"resp_1","conversation":"conv_1"', 'mutually_exclusive_parameters'],
  ['"previous_response_id":"resp_1","conversation":{"id":"conv_1"}', 'mutually_exclusive_parameters'],
  ['"previous_response_id":7', 'invalid_type'],
  ['"conversation":{}', 'invalid_type'],
  ['"input":7', 'invalid_type'],
  ['"input":["a"]', 'invalid_type'],
  ['"store":"yes"', 'invalid_type'],
  ['"store":true,"store":false', 'duplicate_key'],
])('{"model":"m",%s} is refused: %s', (members, code) => {
  expect(errorOf(() => read(`{"model":"m",${members}}`)).code).toBe(code)
})

test.each([
  ['"previous_response_id":"resp_1"', { kind: 'response', id: 'resp_1' }],
  ['"conversation":"conv_1"', { kind: 'conversation', id: 'conv_1' }],
  ['"conversation":{"id":"conv_1"},"previous_response_id":null', { kind: 'conversation', id: 'conv_1' }],
  ['"input":null', undefined],
])('{"model":"m",%s} continues %o', (members, continued) => {
  expect(read(`{"model":"m",${members}}`).continued).toEqual(continued)
})

test('a history that is too large is refused, not cut', () => {
  const text = '{"model":"m","previous_response_id":"resp_1","input":"a"}'
  const history = [JSON.stringify({ type: 'message', role: 'user', content: 'x'.repeat(500) })]
  expect(errorOf(() => expand(text, history, 400)).code).toBe('request_too_large')
})

test('a reference to a kept item is a part of the history already, and one to another is refused', () => {
  const history = [JSON.stringify({ type: 'message', role: 'user', content: 'a' })]
  const input = (id: string) =>
    JSON.stringify({ model: 'm', previous_response_id: 'resp_1', input: [{ type: 'item_reference', id }] })
  expect(expand(input('item_0'), history)).toMatchObject({ input: [{ content: 'a' }] })
  expect(errorOf(() => expand(input('item_9'), history)).code).toBe('item_not_found')
})

test.each<[string, object, object | undefined]>([
  [
    'a refusal is a text',
    { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'No.', annotations: [] }] },
  ],
  [
    'a message that was cut is complete',
    { type: 'message', role: 'assistant', status: 'incomplete', content: [{ type: 'output_text', text: 'a' }] },
    { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'a' }] },
  ],
  [
    'what only its author can decrypt is left out',
    { type: 'reasoning', id: 'rs_1', summary: [{ text: 'a' }], encrypted_content: 'xyz' },
    { type: 'reasoning', id: 'rs_1', summary: [{ text: 'a' }], encrypted_content: null },
  ],
  [
    'reasoning without a readable part is left out',
    { type: 'reasoning', summary: [], encrypted_content: 'xyz' },
    undefined,
  ],
  ['a message that says nothing is left out', { type: 'message', role: 'assistant', content: [] }, undefined],
  [
    'an image by its address stays',
    { role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] },
    { role: 'user', content: [{ type: 'input_image', image_url: 'https://example.com/a.png' }] },
  ],
])('for an engine %s', (_what, item, wanted) => {
  const text = '{"model":"m","previous_response_id":"resp_1","input":"a"}'
  const expanded = expand(text, [JSON.stringify(item)])
  expect(expanded).toMatchObject({ input: wanted === undefined ? listOf('a') : [wanted, ...listOf('a')] })
})
