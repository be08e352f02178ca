// Traces in the Mooncake format.
import { readFile } from 'node:fs/promises'
import { promisify, types } from 'node:util'
import { gunzip } from 'node:zlib'
import { z } from 'zod'
import { readJson } from '../../src/json/read-json.ts'

/** One request of a trace. */
export interface TraceRequest {
  /** When it came, milliseconds since the trace's start. */
  readonly timestampMs: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** The prompt in blocks of {@link blockTokens} tokens; the last may be partly filled. Equal ids: equal so far. */
  readonly blocks: readonly number[]
  /** Its conversation's name. Default: found by its blocks. */
  readonly conversation?: string | undefined
  /** Between its conversation's answer before and this request, milliseconds. Default: unknown. */
  readonly pauseMs?: number | undefined
}

/** Tokens of a block in the Mooncake trace format. */
export const blockTokens = 512

/** What a user can correct: an option, a line of the trace, a path. The message names it and what is wrong with it. */
export class ReplayError extends Error {
  override readonly name = 'ReplayError'
}

/** The message of an error, also of one that another realm made. */
export const errorText = (error: unknown): string => (types.isNativeError(error) ? error.message : String(error))

/**
 * The requests of a trace file, gzipped or not: JSON lines. Empty lines are passed over.
 * @throws ReplayError for a file that cannot be read or has no requests, and for a line of another form or back in time
 */
export const readTrace = async (path: string): Promise<readonly TraceRequest[]> => {
  const requests: TraceRequest[] = []
  for (const [index, line] of (await readText(path)).split('\n').entries()) {
    if (line.trim() === '') continue
    const request = parseTraceLine(line, index + 1)
    const latestMs = requests.at(-1)?.timestampMs ?? 0
    if (request.timestampMs < latestMs) {
      const times = `"timestamp" ${request.timestampMs} is before ${latestMs}, that of the line before`
      throw new ReplayError(`line ${index + 1}: ${times}`)
    }
    requests.push(request)
  }
  if (requests.length === 0) throw new ReplayError(`${path} has no requests`)
  return requests
}

const gzipMagic = [0x1f, 0x8b] as const

const readText = async (path: string): Promise<string> => {
  try {
    const bytes = await readFile(path)
    const isGzipped = bytes[0] === gzipMagic[0] && bytes[1] === gzipMagic[1]
    return (isGzipped ? await promisify(gunzip)(bytes) : bytes).toString()
  } catch (error) {
    throw new ReplayError(`${path} cannot be read: ${errorText(error)}`, { cause: error })
  }
}

const lineSchema = z.object({
  timestamp: z.int().min(0),
  input_length: z.int().min(1),
  output_length: z.int().min(0),
  hash_ids: z.array(z.int().min(0)),
  conversation: z.string().optional(),
  pause: z.number().min(0).optional(),
})

/**
 * Reads one line of a trace: a JSON object with `timestamp` (milliseconds), `input_length` and `output_length` (tokens)
 * and `hash_ids`, one for each 512 tokens of the prompt; if known, `conversation` (its name) and `pause` (milliseconds
 * since the answer before). Further members are passed over.
 * @throws ReplayError
 */
export const parseTraceLine = (text: string, lineNumber: number): TraceRequest => {
  const wrong = (what: string): ReplayError => new ReplayError(`line ${lineNumber}: ${what}`)
  const { data, error } = lineSchema.safeParse(readJson(text))
  if (data === undefined) throw wrong(z.prettifyError(error))
  const { timestamp, input_length: inputTokens, output_length: outputTokens, hash_ids: blocks } = data
  const { conversation, pause: pauseMs } = data
  const expected = Math.ceil(inputTokens / blockTokens)
  if (blocks.length !== expected) {
    throw wrong(`"hash_ids" has ${blocks.length} blocks, and "input_length" ${inputTokens} makes ${expected}`)
  }
  return { timestampMs: timestamp, inputTokens, outputTokens, blocks, conversation, pauseMs }
}
