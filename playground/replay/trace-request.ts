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

const fields = ['timestamp', 'input_length', 'output_length', 'hash_ids'] as const

/**
 * Reads one line of a trace: a JSON object with `timestamp` (milliseconds), `input_length` and `output_length` (tokens) and `hash_ids`,
 * one for each 512 tokens of the prompt. Further members are passed over.
 *
 * @throws TraceError
 */
export const parseTraceLine = (text: string, lineNumber: number): TraceRequest => {
  const wrong = (what: string): TraceError => new TraceError(`line ${lineNumber}: ${what}`)
  const record = parseObject(text)
  if (record === undefined) throw wrong('not a JSON object')
  for (const field of fields) {
    if (!(field in record)) throw wrong(`"${field}" is missing`)
  }
  const count = (field: (typeof fields)[number], least: number): number => {
    const value = record[field]
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
      throw wrong(`"${field}" is not a whole number from ${least}`)
    }
    return value
  }
  const timestampMs = count('timestamp', 0)
  const inputTokens = count('input_length', 1)
  const outputTokens = count('output_length', 0)
  const blocks = record['hash_ids']
  if (!isBlockList(blocks)) throw wrong('"hash_ids" is not a list of whole numbers from 0')
  const expected = Math.ceil(inputTokens / blockTokens)
  if (blocks.length !== expected) {
    throw wrong(`"hash_ids" has ${blocks.length} blocks, and "input_length" ${inputTokens} makes ${expected}`)
  }
  return { timestampMs, inputTokens, outputTokens, blocks }
}

const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

const isBlockList = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((id) => typeof id === 'number' && Number.isSafeInteger(id) && id >= 0)
