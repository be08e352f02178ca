import { createParser } from 'eventsource-parser'
import { readJson } from '../json/read-json.ts'
import { readTimings, readUsage, type TokenUsage } from './usage.ts'

/** Reads an engine's answer as it passes: its token counts, and whether a stream came to its end. */
export interface AnswerReader {
  chunk(bytes: Buffer): void
  /** What was found so far. `isWhole`: a stream had its last event and no error; others are whole by their framing. */
  result(): { readonly isWhole: boolean; readonly usage: TokenUsage | undefined }
}

/** Whether this is the `content-type` of an answer that is a stream. */
export const isEventStream = (contentType: string): boolean => /^text\/event-stream\s*(?:;|$)/i.test(contentType)
/** Whether this is the `content-type` of any other answer of an engine. */
export const isJson = (contentType: string): boolean => /^application\/json\s*(?:;|$)/i.test(contentType)

/** Reads only JSON and event streams, and nothing encoded; of an encoded stream nobody knows that it was whole. */
export const createAnswerReader = (contentType: string, encodings: readonly string[]): AnswerReader => {
  const isStream = isEventStream(contentType)
  if (encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) return unread(!isStream)
  if (isStream) return createStreamReader()
  return isJson(contentType) ? createJsonReader() : unread(true)
}

const unread = (isWhole: boolean): AnswerReader => ({ chunk: () => {}, result: () => ({ isWhole, usage: undefined }) })

/** A longer line is no event of an engine. */
const maxEventBytes = 16 * 1024 * 1024

/** Events that end a stream of OpenAI's responses and of Anthropic's messages. Other APIs end one by the data `[DONE]`. */
export const lastEvents: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'message_stop'])
/** Events of a stream that failed. */
export const errorEvents: ReadonlySet<unknown> = new Set(['error', 'response.failed'])

const createStreamReader = (): AnswerReader => {
  const decoder = new TextDecoder()
  let state: 'open' | 'done' | 'failed' = 'open'
  let usage: TokenUsage | undefined
  /** Anthropic's streams tell the tokens of the prompt at their start, and perhaps not again. */
  let usageAtStart: unknown
  const parser = createParser({
    maxBufferSize: maxEventBytes,
    onEvent: ({ event, data }) => {
      if (errorEvents.has(event) || /^\{\s*"error"/.test(data)) state = 'failed'
      else if (state === 'open' && (data === '[DONE]' || lastEvents.has(event))) state = 'done'
      if (event === 'message_start') usageAtStart = objectBehind(data, '"usage"')
      usage = countsIn(data, usageAtStart) ?? usage
    },
    // Some engines end a failed stream with a field that is none.
    onError: ({ type, field }) => {
      if (type === 'max-buffer-size-exceeded' || field === 'error') state = 'failed'
    },
  })
  return {
    chunk: (bytes) => {
      if (state !== 'failed') parser.feed(decoder.decode(bytes, { stream: true }))
    },
    result: () => ({ isWhole: state === 'done', usage }),
  }
}

/** Longest object with counts. Inside a JSON string its quotes would be escaped. */
const maxCountsLength = 4096

const createJsonReader = (): AnswerReader => {
  let rest = ''
  let usage: TokenUsage | undefined
  return {
    chunk: (bytes) => {
      const text = rest + bytes.toString('latin1')
      usage = countsIn(text) ?? usage
      rest = text.slice(-maxCountsLength)
    },
    result: () => ({ isWhole: true, usage }),
  }
}

/** The last `usage` with counts in the text, behind an earlier one, else the last `timings` (llama-server). */
const countsIn = (text: string, earlier?: unknown): TokenUsage | undefined => {
  const usage = objectBehind(text, '"usage"')
  return (usage === undefined ? undefined : readUsage([earlier, usage])) ?? readTimings(objectBehind(text, '"timings"'))
}

const objectBehind = (text: string, key: string): unknown => {
  const at = text.lastIndexOf(key)
  if (at === -1) return undefined
  const behind = text.slice(at + key.length, at + key.length + maxCountsLength)
  const [colon] = /^\s*:\s*(?=\{)/.exec(behind) ?? []
  if (colon === undefined) return undefined
  let depth = 0
  for (let end = colon.length; end < behind.length; end += 1) {
    if (behind[end] === '{') depth += 1
    else if (behind[end] === '}') depth -= 1
    if (depth === 0) return readJson(behind.slice(colon.length, end + 1))
  }
  return undefined
}
