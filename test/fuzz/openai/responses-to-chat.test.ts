import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { toChatRequest } from '../../../src/openai/responses-to-chat/chat-request.ts'
import { allSlices } from '../../support/all-slices.ts'
import { errorOf } from '../../support/error-of.ts'

const translate = (request: object, indent = 0) =>
  allSlices(toChatRequest(Buffer.from(JSON.stringify(request, null, indent))))
const chatOf = (request: object, indent = 0): unknown => JSON.parse(String(translate(request, indent).body))

const anyText = fc.string({ unit: 'binary' })
const anyId = fc.option(fc.string(), { nil: undefined })

/** An item, and the message that it makes; a call makes a part of one. */
const anyContent = fc.oneof(
  anyText.map((text) => ({ given: text, chat: text })),
  anyText.map((text) => ({ given: [{ type: 'input_text', text }], chat: text })),
  anyText.map((refusal) => ({ given: [{ type: 'refusal', refusal }], chat: refusal })),
  fc.tuple(anyText, fc.webUrl()).map(([text, url]) => ({
    given: [
      { type: 'output_text', annotations: [], text },
      { type: 'input_image', image_url: url, detail: 'low' },
    ],
    chat: [
      { type: 'text', text },
      { type: 'image_url', image_url: { url, detail: 'low' } },
    ],
  })),
)
const anyMessage = fc
  .record({
    role: fc.constantFrom('user', 'assistant', 'developer', 'system'),
    content: anyContent,
    id: anyId,
    typed: fc.boolean(),
  })
  .map(({ role, content, id, typed }) => ({
    item: { ...(typed ? { type: 'message' } : {}), id, role, content: content.given, status: 'completed' },
    chat: { kind: 'message', role: role === 'developer' ? 'system' : role, content: content.chat } as const,
  }))
const anyCall = fc.record({ call_id: fc.string(), name: fc.string(), args: fc.json(), id: anyId }).map((call) => ({
  item: { type: 'function_call', id: call.id, call_id: call.call_id, name: call.name, arguments: call.args },
  chat: {
    kind: 'call',
    call: { id: call.call_id, type: 'function', function: { name: call.name, arguments: call.args } },
  } as const,
}))
const anyOutput = fc.record({ call_id: fc.string(), output: anyContent }).map(({ call_id, output }) => ({
  item: { type: 'function_call_output', call_id, output: output.given },
  chat: { kind: 'message', role: 'tool', tool_call_id: call_id, content: output.chat } as const,
}))
const anyReasoning = fc.record({ summary: fc.array(anyText) }).map((reasoning) => ({
  item: { type: 'reasoning', ...reasoning },
  chat: { kind: 'nothing' } as const,
}))
const anyItems = fc.array(fc.oneof(anyMessage, anyCall, anyOutput, anyReasoning), { minLength: 1 })

type Item = ReturnType<typeof anyItems.generate>['value'][number]

/** The same by the platform's parser, message for message. */
const messagesOf = (items: readonly Item[]): readonly object[] => {
  const messages: { role: string; content: unknown; tool_calls?: object[]; tool_call_id?: string }[] = []
  let isOpen = false
  for (const { chat } of items) {
    if (chat.kind === 'message') {
      const { kind: _, ...message } = chat
      messages.push({ ...message })
      isOpen = chat.role === 'assistant'
    } else if (chat.kind === 'call') {
      if (!isOpen) messages.push({ role: 'assistant', content: null })
      isOpen = true
      const last = messages.at(-1)
      if (last !== undefined) last.tool_calls = [...(last.tool_calls ?? []), chat.call]
    }
  }
  return messages
}

test('items become messages with every value unchanged', () => {
  fc.assert(
    fc.property(anyItems, fc.option(anyText, { nil: undefined }), fc.nat(2), (items, instructions, indent) => {
      const messages = messagesOf(items)
      fc.pre(messages.length > 0)
      const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }]
      const request = { model: 'm', instructions, input: items.map(({ item }) => item), store: false }
      expect(chatOf(request, indent)).toEqual({ model: 'm', messages: [...system, ...messages] })
    }),
  )
})

test('a longer history begins byte for byte like the shorter one, whatever the ids of its items', () => {
  fc.assert(
    fc.property(anyItems, anyMessage, anyItems, (items, last, more) => {
      // What the assistant said may go on with a call.
      fc.pre(last.item.role !== 'assistant')
      const short = [...items, last].map(({ item }) => item)
      const long = [...short.map((item) => ({ ...item, id: 'other' })), ...more.map(({ item }) => item)]
      const before = String(translate({ model: 'm', input: short }).body).replace(/\]\}$/, '')
      expect(String(translate({ model: 'm', input: long }).body).startsWith(before)).toBe(true)
    }),
  )
})

test('members of engines pass unchanged, and those of the gateway do not pass', () => {
  const known = {
    model: 'm',
    input: 'hello',
    previous_response_id: null,
    store: true,
    truncation: 'auto',
    metadata: { a: 'b' },
    max_output_tokens: 7,
    stream: true,
    stream_options: { include_obfuscation: false },
    parallel_tool_calls: false,
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: true, description: null }],
    tool_choice: { type: 'function', name: 'f' },
    reasoning: { effort: 'low', summary: 'auto' },
    text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
    include: [],
  }
  const chat = {
    model: 'm',
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 7,
    stream: true,
    stream_options: { include_usage: true },
    parallel_tool_calls: false,
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    reasoning_effort: 'low',
    response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' }, strict: true } },
    verbosity: 'low',
  }
  fc.assert(
    fc.property(
      fc.dictionary(
        fc.string().map((name) => `x${name}`),
        fc.jsonValue(),
        { maxKeys: 4 },
      ),
      (own) => {
        const passed = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== null))
        expect(chatOf({ ...known, ...own })).toEqual(JSON.parse(JSON.stringify({ ...chat, ...passed })))
      },
    ),
  )
})

test.each<[string, object]>([
  ['tools[1].type', { tools: [{ type: 'function', name: 'f' }, { type: 'file_search' }] }],
  ['tool_choice', { tool_choice: { type: 'allowed_tools' }, tools: [{ type: 'function', name: 'f' }] }],
  ['include', { include: ['reasoning.encrypted_content'] }],
  ['prompt', { prompt: { id: 'pmpt_1' } }],
  ['top_logprobs', { top_logprobs: 2 }],
  ['max_tool_calls', { max_tool_calls: 1 }],
  ['context_management', { context_management: [{ type: 'compaction' }] }],
  ['reasoning.summary', { reasoning: { summary: 'detailed' } }],
  ['text.format.type', { text: { format: { type: 'grammar' } } }],
  ['messages', { messages: [] }],
  ['n', { n: 2 }],
  ['input', { input: [{ type: 'web_search_call', id: 'ws_1' }] }],
  ['input', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] }],
  ['input', { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }] }],
])('what chat has nothing like is refused by its name: %s', (param, part) => {
  expect(errorOf(() => translate({ model: 'm', input: 'a', ...part }))).toMatchObject({
    code: 'unsupported_parameter',
    param,
  })
})

test.each<[string, object]>([
  ['missing_required_parameter', { input: [] }],
  ['missing_required_parameter', { input: null }],
  ['invalid_value', { input: [{ role: 'critic', content: 'a' }] }],
  ['invalid_type', { tools: {} }],
])('%s', (code, part) => {
  expect(errorOf(() => translate({ model: 'm', input: 'a', ...part }))).toMatchObject({ code })
})

test('no slice of a large request is large', () => {
  const text = 'a "quoted" \\ text. '.repeat(20_000)
  const input = [
    { role: 'user', content: text },
    ...Array.from({ length: 4_000 }, () => ({ role: 'user', content: 'a' })),
  ]
  const work = toChatRequest(Buffer.from(JSON.stringify({ model: 'm', input })))
  let slices = 0
  while (work.next().done !== true) slices += 1
  expect(slices).toBeGreaterThan(20)
})
