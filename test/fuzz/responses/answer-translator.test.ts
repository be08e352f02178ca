import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createSlices } from '../../../src/async/slices.ts'
import { createAnswerRewriter } from '../../../src/responses/answer-rewriter.ts'
import { createAnswerTranslator, inTurn } from '../../../src/responses/answer-translator.ts'
import { piecesOf } from '../../support/pieces-of.ts'

type Members = Record<string, unknown>
interface Event extends Members {
  readonly type: string
}

const send = async (pieces: readonly Buffer[], contentType: string, isWhole = true) => {
  const kept: { readonly id: string; readonly response: string }[] = []
  const memory = { maxBytes: 100_000_000, heldBytes: 0 }
  const slices = createSlices()
  const rewriter = inTurn(
    createAnswerTranslator({ key: 'k', createdAt: 1, echo: '"metadata":{}', memory, slices }),
    createAnswerRewriter({
      maxJsonDepth: 64,
      maxJsonKeys: 10_000,
      asked: { previousResponseId: 'resp_0', conversationId: undefined, store: true },
      keep: async (answer) => kept.push(answer) > 0,
      maxHeldBytes: 10_000_000,
      memory,
      slices,
    }),
  )
  rewriter.head(200, (name) => (name === 'content-type' ? [contentType] : []))
  const out: Buffer[] = []
  for (const [index, piece] of pieces.entries())
    out.push(await rewriter.chunk(piece, isWhole && index === pieces.length - 1))
  rewriter.end()
  expect(memory.heldBytes).toBe(0)
  return { text: String(Buffer.concat(out)), kept }
}

const eventsOf = (text: string): readonly Event[] =>
  text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [, name, data = ''] = /^event: (\S+)\ndata: (.*)$/s.exec(event) ?? []
      const parsed: Event = JSON.parse(data)
      expect(parsed.type).toBe(name)
      return parsed
    })

const anyText = fc.string({ unit: 'grapheme', minLength: 1 })
const anyPlaces = fc.array(fc.nat(100_000), { maxLength: 12 })
/** What one chunk adds. */
const anyDelta = fc.oneof(
  anyText.map((content) => ({ content })),
  anyText.map((reasoning_content) => ({ reasoning_content })),
  anyText.map((refusal) => ({ refusal })),
  fc.record({ index: fc.nat(2), id: fc.nat(1), text: fc.string() }).map(({ index, id, text }) => ({
    tool_calls: [
      { index, id: `call_${index}_${id}`, type: 'function', function: { name: `f${index}`, arguments: text } },
    ],
  })),
  fc.constant({ role: 'assistant', content: '' }),
)
const endings = {
  stop: ['completed', null],
  tool_calls: ['completed', null],
  eos_token: ['completed', null],
  length: ['incomplete', { reason: 'max_output_tokens' }],
  content_filter: ['incomplete', { reason: 'content_filter' }],
} as const
const anyEnding = fc.constantFrom(...(Object.keys(endings) as (keyof typeof endings)[]))
const usage = { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 8 } }
const common = { id: 'chatcmpl-1', created: 7, model: 'm' }

const streamOf = (deltas: readonly object[], ending: string, lineBreak = '\n'): string =>
  [
    ...deltas.map((delta) => ({ ...common, choices: [{ index: 0, delta, finish_reason: null }] })),
    { ...common, choices: [{ index: 0, delta: {}, finish_reason: ending }] },
    { ...common, choices: [], usage },
  ]
    .map((chunk) => `data: ${JSON.stringify(chunk)}${lineBreak}${lineBreak}`)
    .join('')
const last = 'data: [DONE]\n\n'

/** The output that the events of a stream make, as a client puts it together. */
const outputOf = (events: readonly Event[]): readonly Members[] => {
  const output: { item: Members; parts: Members[]; text: string }[] = []
  for (const event of events) {
    const at = output[Number(event['output_index'])]
    if (event.type === 'response.output_item.added') {
      expect(event['output_index']).toBe(output.length)
      output.push({ item: event['item'] as Members, parts: [], text: '' })
    } else if (event.type === 'response.output_item.done' && at !== undefined) {
      const { id, type } = at.item
      expect(event['item']).toMatchObject({ id, type })
      at.item = event['item'] as Members
    } else if (event.type.endsWith('.delta') && at !== undefined) at.text += String(event['delta'])
    else if (/_(?:text|arguments)\.done$|refusal\.done$/.test(event.type) && at !== undefined)
      expect(event['text'] ?? event['arguments'] ?? event['refusal']).toBe(at.text)
  }
  for (const { item, text } of output) {
    const [part = {}] = (item['content'] ?? []) as Members[]
    expect(item['arguments'] ?? part['text'] ?? part['refusal']).toBe(text)
  }
  return output.map(({ item }) => item)
}

test('a stream of chat becomes the events that make its response, which is kept, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyDelta),
      anyEnding,
      anyPlaces,
      fc.constantFrom('\n', '\r\n'),
      async (deltas, ending, places, lineBreak) => {
        const sent = streamOf(deltas, ending, lineBreak) + last
        const { text, kept } = await send(piecesOf(sent, places), 'text/event-stream')
        const whole = await send([Buffer.from(sent)], 'text/event-stream')
        expect(text).toBe(whole.text)
        const events = eventsOf(text)
        expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_, index) => index))
        const [status, details] = endings[ending]
        expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
        const end = events.at(-1)
        expect(end?.type).toBe(`response.${status}`)
        const response = end?.['response'] as Members
        expect(response).toMatchObject({
          id: 'resp_k',
          object: 'response',
          created_at: 7,
          model: 'm',
          metadata: {},
          status,
          error: null,
          incomplete_details: details,
          previous_response_id: 'resp_0',
          store: true,
          usage: { input_tokens: 9, input_tokens_details: { cached_tokens: 8 }, output_tokens: 2, total_tokens: 11 },
        })
        expect(response['output']).toEqual(outputOf(events))
        expect(kept.map((answer) => JSON.parse(answer.response))).toEqual([response])
      },
    ),
  )
})

test('a whole answer makes the response that its stream makes', async () => {
  const anyCalls = fc.array(fc.record({ id: fc.string({ minLength: 1 }), name: fc.string(), args: fc.json() }))
  const maybeText = fc.option(anyText, { nil: null })
  await fc.assert(
    fc.asyncProperty(
      maybeText,
      maybeText,
      anyCalls,
      anyEnding,
      anyPlaces,
      async (reasoning, content, calls, ending, places) => {
        const tool_calls = calls.map(({ id, name, args }) => ({
          id,
          type: 'function',
          function: { name, arguments: args },
        }))
        const message = { role: 'assistant', reasoning_content: reasoning, content, tool_calls }
        const answer = JSON.stringify(
          { ...common, choices: [{ index: 0, message, finish_reason: ending }], usage },
          null,
          1,
        )
        const deltas = [
          { reasoning_content: reasoning },
          { content },
          ...tool_calls.map((call, index) => ({ tool_calls: [{ ...call, index }] })),
        ]
        const { text, kept } = await send(piecesOf(answer, places), 'application/json')
        const streamed = await send([Buffer.from(streamOf(deltas, ending) + last)], 'text/event-stream')
        expect(JSON.parse(text)).toEqual(eventsOf(streamed.text).at(-1)?.['response'])
        expect(kept).toHaveLength(1)
      },
    ),
  )
})

test('calls that an engine gives one index are told apart by their ids, not by an id that comes without a name', async () => {
  const called = (id: string, name: string | undefined, text: string) => ({
    tool_calls: [{ index: 0, id, function: { name, arguments: text } }],
  })
  const deltas = [
    called('a', 'f', '{"x"'),
    called('', undefined, ':1'),
    called('a2', undefined, '}'),
    called('b', 'f', ''),
    called('b', 'f', '{}'),
  ]
  const { text } = await send([Buffer.from(streamOf(deltas, 'tool_calls') + last)], 'text/event-stream')
  expect(outputOf(eventsOf(text))).toMatchObject([
    { call_id: 'a', name: 'f', arguments: '{"x":1}', status: 'completed' },
    { call_id: 'b', name: 'f', arguments: '{}', status: 'completed' },
  ])
})

test('a stream that is cut anywhere has no end, and is not kept', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyDelta), anyPlaces, fc.nat(), fc.boolean(), async (deltas, places, seed, isWhole) => {
      const sent = streamOf(deltas, 'stop')
      const { text, kept } = await send(
        piecesOf(sent.slice(0, seed % sent.length), places),
        'text/event-stream',
        isWhole,
      )
      const types = eventsOf(text).map(({ type }) => type)
      expect(types).not.toContain('response.completed')
      expect(types.includes('response.failed')).toBe(isWhole)
      expect(kept).toEqual([])
    }),
  )
})

test.each([
  ['text/event-stream', `data: {"error":{"message":"out of memory"}}\n\n${last}`],
  ['text/event-stream', `${streamOf([{ content: 'a' }], 'stop')}data: {"error":"out of memory"}\n\n`],
  ['application/json', '{"error":{"message":"out of memory"}}'],
])('an engine that fails in the middle makes a response that failed: %s', async (contentType, sent) => {
  const { text, kept } = await send([Buffer.from(sent)], contentType)
  const response = contentType === 'application/json' ? JSON.parse(text) : eventsOf(text).at(-1)?.['response']
  expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error', message: 'out of memory' } })
  expect(kept).toEqual([])
})

test('any bytes make a response that failed, and what is too long does', async () => {
  const long = JSON.stringify({ choices: [{ message: { content: 'a'.repeat(1_100_000) } }] })
  const anyBytes = fc.uint8Array().map((bytes) => Buffer.from(bytes))
  await fc.assert(
    fc.asyncProperty(fc.oneof(anyBytes, fc.constant(Buffer.from(long))), async (bytes) => {
      const { text } = await send([bytes], 'application/json')
      expect(JSON.parse(text)).toMatchObject({ object: 'response', status: 'failed' })
    }),
    { numRuns: 30 },
  )
})
