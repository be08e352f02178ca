import { readFile } from 'node:fs/promises'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { type InferenceApi, inferencePaths } from '../../../src/openai/create-body.ts'
import { promptMarks } from '../../../src/openai/prompt-marks.ts'
import { allSlices } from '../../support/all-slices.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

const marksOf = (body: unknown, api: InferenceApi = 'chat'): readonly string[] =>
  allSlices(promptMarks(Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)), api))

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.constantFrom('', '"', '\\', '"content":"x"', '{"'),
)
const block = fc.oneof(
  text.map((value) => ({ type: 'text', text: value })),
  text.map((value) => ({ type: 'tool_result', tool_use_id: 'call', content: value })),
  fc.constant({ type: 'image', source: { data: 'aGVsbG8=' } }),
)
const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'system', 'tool'),
  content: fc.oneof(text, fc.array(block, { minLength: 1, maxLength: 3 }), fc.constant(null)),
})
const conversation = fc.array(message, { minLength: 1, maxLength: 8 })
const billing = text.map((hash) => ({ type: 'text', text: `x-anthropic-billing-header: ${hash}` }))
const introduction = fc.oneof(text, fc.array(fc.oneof(block, billing), { maxLength: 3 }))
const tools = [{ name: 'write', input_schema: { properties: { content: { type: 'string' } }, required: ['content'] } }]

describe('marks of a prompt', () => {
  test('a conversation that another one continues ends with a mark that the other has, too', () => {
    fc.assert(
      fc.property(conversation, conversation, (begun, more) => {
        const [last = ''] = marksOf({ model: 'm', messages: begun, tools }).slice(-1)
        expect(marksOf({ model: 'm', messages: [...begun, ...more], tools })).toContain(last)
      }),
    )
  })

  test('what clients change from turn to turn changes no mark', () => {
    const cached = { cache_control: { type: 'ephemeral' } }
    const plain = { role: 'user', content: 'Say hello' }
    const listed = { role: 'user', content: [{ type: 'text', text: 'Say hello', ...cached }] }

    expect(marksOf({ messages: [listed] })).toEqual(marksOf({ messages: [plain] }))
  })

  test.each([
    { name: 'another first message', other: [{ role: 'user', content: 'Write a title' }] },
    {
      name: 'the same system prompt before another message',
      other: [
        { role: 'system', content: 'You help' },
        { role: 'user', content: 'Write a title' },
      ],
    },
  ])('$name has other marks', ({ other }) => {
    const one = [
      { role: 'system', content: 'You help' },
      { role: 'user', content: 'Say hello' },
    ]

    expect(marksOf({ messages: other })).not.toContain(marksOf({ messages: one }).at(-1))
    expect(marksOf({ messages: one })).not.toContain(marksOf({ messages: other }).at(-1))
  })

  test.each([
    { api: 'messages', of: (text: string) => ({ messages: [], system: [{ type: 'text', text }] }) },
    { api: 'responses', of: (instructions: string) => ({ instructions, input: [] }) },
  ] as const)('what comes before the messages of $api is part of each mark', ({ api, of }) => {
    const message = { role: 'user', content: 'Say hello' }
    const marks = (introduction: string) => marksOf({ ...of(introduction), messages: [message] }, api)

    expect(marks('You help')).toEqual(marks('You help'))
    expect(marks('You help')).not.toEqual(marks('Write a title'))
  })

  test("the line that Claude Code changes with every request is no part of its prompt's marks", () => {
    const marks = (hash: string) => {
      const blocks = [`x-anthropic-billing-header: cch=${hash};`, 'You help'].map((text) => ({ type: 'text', text }))
      return marksOf({ messages: [{ role: 'user', content: 'Say hello' }], system: blocks }, 'messages')
    }

    expect(marks('12345')).toEqual(marks('abcde'))
  })

  test('a prompt that is one text has a mark of its beginning', () => {
    const beginning = 'x'.repeat(300)

    expect(marksOf({ prompt: beginning })).toEqual(marksOf({ prompt: `${beginning} and more` }))
    expect(marksOf({ input: 'hello' })).not.toEqual(marksOf({ input: 'bye' }))
  })

  test('a very long conversation keeps its last mark', () => {
    const messages = Array.from({ length: 3000 }, (_, index) => ({ role: 'user', content: `message ${index}` }))

    expect(marksOf({ messages })).toHaveLength(64)
    expect(marksOf({ messages: [...messages, ...messages] })).toEqual(marksOf({ messages }))
  })
})

describe("the marks of Envoy's Lua filter", () => {
  const redis = useTestRedis()
  const lua = async (): Promise<string> => {
    const file = await readFile(new URL('../../../deploy/envoy/session-names.lua', import.meta.url), 'utf8')
    const [marks = ''] = file.split('function envoy_on_request')
    return `${marks}\nreturn prompt_marks(ARGV[1], ARGV[2])`
  }

  test("are those of the gateway, whatever the body's bytes", async () => {
    const script = await lua()
    const bytes = fc.oneof(
      fc
        .record({ messages: conversation, system: introduction, instructions: text, tools: fc.constant(tools) })
        .map((body) => Buffer.from(JSON.stringify(body))),
      fc.record({ prompt: text, input: text }).map((body) => Buffer.from(JSON.stringify(body, null, 1))),
      fc
        .array(fc.constantFrom('"content"', ':', ' ', '[', '{', '}', '"', '\\', '"text"', 'a', 'é'), { maxLength: 60 })
        .map((pieces) => Buffer.from(pieces.join(''))),
    )
    await fc.assert(
      fc.asyncProperty(bytes, fc.constantFrom<InferenceApi>('chat', 'messages', 'responses'), async (body, api) => {
        const marks = await redis().raw.eval(script, 0, body, inferencePaths[api])
        expect(String(marks).split(',')).toEqual(marksOf(body, api))
      }),
      { numRuns: 300 },
    )
  })
})
