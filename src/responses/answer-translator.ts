import { createParser } from 'eventsource-parser'
import type { SlicedWork, Slices } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import { KeptBytes } from '../openai/kept-bytes.ts'
import { readChatPart } from '../openai/responses-to-chat/chat-part.ts'
import { type ResponseStart, ResponseWriter } from '../openai/responses-to-chat/response-writer.ts'
import { answerFormOf } from './answer-form.ts'
import type { AnswerRewriter, HeldBytes } from './answer-rewriter.ts'

export interface AnswerTranslatorOptions extends ResponseStart {
  readonly memory: HeldBytes
  readonly slices: Slices
}

/** A longer answer fails, as a whole or as the texts of a stream: parsed and written within some 10 ms. UTF-16 units. */
const maxLength = 1_048_576
/** Of a stream, what is read at once: some 2 ms. */
const sliceBytes = 32_768
/** Of UTF-8 for a UTF-16 unit. */
const maxBytesPerUnit = 3
const lastData = '[DONE]'
const tooLong = 'The answer is too long for the gateway.'
const cutShort = 'The answer of the engine ended early.'

/** Makes the answer of an engine to /v1/chat/completions one to /v1/responses, event by event where it is a stream. */
export const createAnswerTranslator = (options: AnswerTranslatorOptions): AnswerRewriter => {
  const { memory, slices } = options
  const writer = new ResponseWriter(options)
  const held = new KeptBytes()
  const decoder = new TextDecoder()
  let form: 'stream' | 'json' | 'over' = 'over'
  const echoBytes = 2 * options.echo.length
  let counted = echoBytes
  memory.heldBytes += echoBytes
  let events: string[] = []

  const count = (bytes: number): void => {
    memory.heldBytes += bytes - counted
    counted = bytes
  }
  const isTooMuch = (bytes: number, length: number): boolean => {
    count(echoBytes + bytes)
    return length > maxLength || memory.heldBytes > memory.maxBytes
  }
  const fail = (message: string): void => {
    events.push(writer.fail(message).events)
    form = 'over'
  }

  const takeEvent = (data: string): void => {
    if (form === 'over') return
    if (data === lastData) {
      events.push(writer.end().events)
      form = 'over'
      return
    }
    const part = readChatPart(readJson(data, maxLength))
    if (part?.error !== undefined) fail(part.error)
    else if (part !== undefined) events.push(writer.add(part))
    else fail('The engine sent an event that is none of a chat.')
  }
  const parser = createParser({
    maxBufferSize: maxLength,
    onEvent: ({ data }) => takeEvent(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') fail(tooLong)
    },
  })

  function* streamChunk(bytes: Buffer, isLast: boolean): SlicedWork<Buffer> {
    for (let at = 0; at < bytes.length && form === 'stream'; at += sliceBytes) {
      if (at > 0) yield
      parser.feed(decoder.decode(bytes.subarray(at, at + sliceBytes), { stream: true }))
      if (form === 'stream' && isTooMuch(writer.heldBytes, writer.heldLength)) fail(tooLong)
    }
    if (isLast && form === 'stream') fail(cutShort)
    const text = events.join('')
    events = []
    return Buffer.from(text)
  }

  const wholeAnswer = (text: string): string => {
    const part = readChatPart(readJson(text, maxLength))
    if (part === undefined) return writer.fail(text.length > maxLength ? tooLong : cutShort).response
    if (part.error !== undefined) return writer.fail(part.error).response
    writer.add(part)
    return writer.end().response
  }

  const jsonChunk = (bytes: Buffer, isLast: boolean): Buffer => {
    if (bytes.length > 0) held.add(bytes)
    if (isTooMuch(held.takenBytes, held.length / maxBytesPerUnit)) {
      form = 'over'
      held.take()
      return Buffer.from(writer.fail(tooLong).response)
    }
    return isLast ? Buffer.from(wholeAnswer(Buffer.concat(held.take()).toString())) : noBytes
  }

  return {
    head: (status, header) => {
      form = answerFormOf(status, header) ?? 'over'
      return form === 'over' ? 'pass' : 'rewrite'
    },
    chunk: (bytes, isLast) => {
      switch (form) {
        case 'stream':
          return slices.run(streamChunk(bytes, isLast))
        case 'json':
          return jsonChunk(bytes, isLast)
        case 'over':
          return noBytes
      }
    },
    end: () => {
      form = 'over'
      held.take()
      count(0)
    },
  }
}

const noBytes = Buffer.alloc(0)

/** An answer that is rewritten twice, `first` before `then`. */
export const inTurn = (first: AnswerRewriter, then: AnswerRewriter): AnswerRewriter => ({
  head: (status, header) => {
    // The length that it was announced with is not the one that it has in between.
    then.head(status, (name) => (name === 'content-length' ? [] : header(name)))
    return first.head(status, header)
  },
  chunk: async (bytes, isLast) => then.chunk(await first.chunk(bytes, isLast), isLast),
  end: () => {
    first.end()
    then.end()
  },
})
