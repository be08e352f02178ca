import { types } from 'node:util'
import { z } from 'zod'
import { readJson } from '../../src/json/read-json.ts'

/** One request of a trace. */
export interface TraceRequest {
  /** When it came, milliseconds since the trace's start. */
  readonly timestampMs: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** The prompt in blocks of {@link blockTokens} tokens, the last one perhaps partly filled. Equal ids mean equal prompts up to there. */
  readonly blocks: readonly number[]
}

/** Tokens of a block in the Mooncake trace format. */
export const blockTokens = 512

/** A line of a trace is not what the format says, or the file cannot be read. The message names the line and what is wrong with it. */
export class TraceError extends Error {
  override readonly name = 'TraceError'
}

/** The message of an error, also of one that another realm made. */
export const errorText = (error: unknown): string => (types.isNativeError(error) ? error.message : String(error))

const unlessMissing = (words: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'is missing' : words
const whole = (least: number) => {
  const error = unlessMissing(`is not a whole number from ${least}`)
  return z.int({ error }).min(least, { error })
}
const blockList = { error: unlessMissing('is not a list of whole numbers from 0') }
const lineSchema = z.object({
  timestamp: whole(0),
  input_length: whole(1),
  output_length: whole(0),
  hash_ids: z.array(z.int(blockList).min(0, blockList), blockList),
})

/**
 * Reads one line of a trace: a JSON object with `timestamp` (milliseconds), `input_length` and `output_length` (tokens) and `hash_ids`,
 * one for each 512 tokens of the prompt. Further members are passed over.
 *
 * @throws TraceError
 */
export const parseTraceLine = (text: string, lineNumber: number): TraceRequest => {
  const wrong = (what: string): TraceError => new TraceError(`line ${lineNumber}: ${what}`)
  const { data, error } = lineSchema.safeParse(readJson(text))
  if (data === undefined) {
    const [issue] = error.issues
    const field = issue?.path[0]
    throw wrong(field === undefined ? 'not a JSON object' : `"${String(field)}" ${issue?.message}`)
  }
  const { timestamp, input_length: inputTokens, output_length: outputTokens, hash_ids: blocks } = data
  const expected = Math.ceil(inputTokens / blockTokens)
  if (blocks.length !== expected) {
    throw wrong(`"hash_ids" has ${blocks.length} blocks, and "input_length" ${inputTokens} makes ${expected}`)
  }
  return { timestampMs: timestamp, inputTokens, outputTokens, blocks }
}
