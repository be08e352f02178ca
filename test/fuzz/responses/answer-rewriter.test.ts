import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createSlices } from '../../../src/async/slices.ts'
import { createAnswerRewriter } from '../../../src/responses/answer-rewriter.ts'
import { piecesOf } from '../../support/pieces-of.ts'

const asked = { previousResponseId: 'resp_0', conversationId: undefined, store: true }
const limits = { maxJsonDepth: 64, maxJsonKeys: 10_000 }

interface Outcome {
  readonly text: string
  readonly bytes: Buffer
  readonly kept: readonly { readonly id: string; readonly response: string }[]
  readonly heldBytes: number
}

const send = async (
  pieces: readonly Buffer[],
  {
    contentType,
    isWhole = true,
    canKeep = true,
    maxHeldBytes = 100_000,
  }: { contentType: string; isWhole?: boolean; canKeep?: boolean; maxHeldBytes?: number },
): Promise<Outcome> => {
  const kept: { readonly id: string; readonly response: string }[] = []
  const memory = { maxBytes: 1_000_000, heldBytes: 0 }
  const rewriter = createAnswerRewriter({
    ...limits,
    asked,
    keep: async (answer) => {
      await nextTurn()
      if (canKeep) kept.push(answer)
      return canKeep
    },
    maxHeldBytes,
    memory,
    slices: createSlices(),
  })
  rewriter.head(200, (name) => (name === 'content-type' ? [contentType] : []))
  const out: Buffer[] = []
  for (const [index, piece] of pieces.entries())
    out.push(await rewriter.chunk(piece, isWhole && index === pieces.length - 1))
  rewriter.end()
  return { bytes: Buffer.concat(out), text: String(Buffer.concat(out)), kept, heldBytes: memory.heldBytes }
}

const anyText = fc.string({ unit: 'binary' })
const anyPlaces = fc.array(fc.nat(100_000), { maxLength: 12 })
const answerOf = (status: string, texts: readonly string[], more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  status,
  error: null,
  previous_response_id: null,
  store: false,
  output: texts.map((text) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] })),
  ...more,
})
const wanted = { previous_response_id: 'resp_0', store: true }

test('an answer says what was asked for, and is kept whole, however it is cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('completed', 'incomplete', 'failed'),
      fc.array(anyText),
      anyPlaces,
      fc.boolean(),
      async (status, texts, places, canKeep) => {
        const answer = answerOf(status, texts)
        const sent = JSON.stringify(answer, null, 1)
        const { text, kept, heldBytes } = await send(piecesOf(sent, places), {
          contentType: 'application/json',
          canKeep,
        })
        const isKept = status !== 'failed' && canKeep
        expect(JSON.parse(text)).toEqual({ ...answer, ...wanted, store: isKept })
        expect(kept).toEqual(isKept ? [{ id: 'resp_1', response: text }] : [])
        expect(heldBytes).toBe(0)
      },
    ),
  )
})

const anyBreak = fc.constantFrom('\n', '\r\n')
const event = (type: string, fields: object, lineBreak: string, named: boolean): string =>
  `${named ? `event: ${type}${lineBreak}` : ''}data: ${JSON.stringify({ type, ...fields })}${lineBreak}${lineBreak}`

test('the events of a stream say it too, all others pass byte for byte, and the whole answer is kept', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyText),
      anyBreak,
      fc.boolean(),
      anyPlaces,
      fc.constantFrom('completed', 'incomplete', 'failed'),
      async (texts, lineBreak, named, places, ending) => {
        const stream = (more: object, endingMore = more) => {
          const write = (type: string, fields: object) => event(type, fields, lineBreak, named)
          return [
            write('response.created', { response: answerOf('in_progress', [], more) }),
            ...texts.map((delta) => write('response.output_text.delta', { delta })),
            write(`response.${ending}`, { response: answerOf(ending, texts, endingMore), sequence_number: 9 }),
            `data: [DONE]${lineBreak}${lineBreak}`,
          ].join('')
        }
        const { text, kept } = await send(piecesOf(stream({}), places), {
          contentType: 'text/event-stream; charset=utf-8',
        })
        expect(text).toBe(stream(wanted, { ...wanted, store: ending !== 'failed' }))
        const answer = JSON.stringify(answerOf(ending, texts, wanted))
        expect(kept).toEqual(ending === 'failed' ? [] : [{ id: 'resp_1', response: answer }])
      },
    ),
  )
})

test('a stream that is cut anywhere is never kept', async () => {
  const created = event('response.created', { response: answerOf('in_progress', []) }, '\n', true)
  const last = event('response.completed', { response: answerOf('completed', ['a']) }, '\n', true)
  await fc.assert(
    fc.asyncProperty(anyPlaces, fc.nat(), async (places, seed) => {
      const whole = `${created}${last}`
      const length = seed % whole.length
      const { kept, heldBytes } = await send(piecesOf(whole.slice(0, length), places), {
        contentType: 'text/event-stream',
        isWhole: false,
      })
      expect(kept).toEqual([])
      expect(heldBytes).toBe(0)
    }),
  )
})

test('what is too long to be held passes unchanged, and is not kept', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('json', 'stream'), anyPlaces, async (form, places) => {
      const answer = answerOf('completed', ['a'.repeat(5000)])
      const sent =
        form === 'json' ? JSON.stringify(answer) : event('response.completed', { response: answer }, '\n', true)
      const contentType = form === 'json' ? 'application/json' : 'text/event-stream'
      const { text, kept } = await send([...piecesOf(sent.slice(0, -2), places), Buffer.from(sent.slice(-2))], {
        contentType,
        maxHeldBytes: 1000,
      })
      expect(text).toBe(sent)
      expect(kept).toEqual([])
    }),
  )
})

test('any bytes pass unchanged', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array()),
      fc.constantFrom('application/json', 'text/event-stream'),
      async (pieces, contentType) => {
        const bytes = pieces.map((piece) => Buffer.from(piece))
        const sent = await send(bytes, { contentType })
        expect(sent.bytes).toEqual(Buffer.concat(bytes))
      },
    ),
  )
})
