import type { SlicedWork } from '../async/slices.ts'
import { readJson } from '../json/read-json.ts'
import { type JsonLimits, scanJsonObject } from '../json/scan-json-object.ts'
import { type AnswerObject, type AskedFor, rewriteAnswer } from './answer-object.ts'

/** Events with the response object in them, by name or by the beginning of their data. */
const lifecycle =
  /^(?:event: ?|data: ?\{\s*"type"\s*:\s*")response\.(?:queued|created|in_progress|completed|incomplete|failed)\b/m
/** So much of an event tells its kind. */
const kindBytes = 256

/** Whether an event of a stream has the response object in it. */
export const hasAnswer = (event: Buffer): boolean => lifecycle.test(event.toString('latin1', 0, kindBytes))

/** Where the data of an event with a single line of them stand. */
const dataIn = (event: Buffer): { readonly start: number; readonly end: number } | undefined => {
  const [first, ...others] = linesOf(event, 'data:')
  return others.length > 0 ? undefined : first
}

/** The values of all lines that begin with this, up to the line break. */
const linesOf = (event: Buffer, name: string): readonly { readonly start: number; readonly end: number }[] => {
  const found: { readonly start: number; readonly end: number }[] = []
  let at = 0
  while (at < event.length) {
    const end = lineEnd(event, at)
    if (event.toString('latin1', at, at + name.length) === name) found.push({ start: at + name.length, end })
    at = end + 1
  }
  return found
}

const lineEnd = (event: Buffer, from: number): number => {
  const ends = [event.indexOf(0x0a, from), event.indexOf(0x0d, from)].filter((end) => end !== -1)
  return ends.length === 0 ? event.length : Math.min(...ends)
}

/** An event with a response object in it. */
export interface AnswerEvent {
  readonly answer: AnswerObject
  /** The response object, unchanged. */
  readonly original: Buffer
  /** The event with another response object in it. */
  readonly with: (answer: Buffer) => Buffer
}

/** Undefined: it has none, or another form than engines write. In slices. */
export function* readAnswerEvent(
  event: Buffer,
  asked: AskedFor,
  limits: JsonLimits,
): SlicedWork<AnswerEvent | undefined> {
  const line = dataIn(event)
  if (line === undefined) return undefined
  const data = event.subarray(line.start, line.end)
  const scan = yield* scanJsonObject(data, limits, ['type', 'response'])
  const span = scan.kind === 'object' ? scan.members.get('response') : undefined
  if (scan.kind !== 'object' || span === undefined) return undefined
  const original = data.subarray(span.start, span.end)
  const answer = yield* rewriteAnswer(original, asked, limits)
  if (answer === undefined) return undefined
  const type = scan.members.get('type')
  const isLast = type !== undefined && lastEvents.has(readJson(data.toString('utf8', type.start, type.end)))
  const [from, to] = [line.start + span.start, line.start + span.end]
  return {
    answer: { ...answer, isFinal: answer.isFinal && isLast },
    original,
    with: (other) => Buffer.concat([event.subarray(0, from), other, event.subarray(to)]),
  }
}

const lastEvents: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete'])

/** Index behind the empty line that ends an event, from `from` on; -1: there is none. */
export const eventEnd = (bytes: Buffer, from: number): number => {
  const ends = emptyLines.flatMap((line) => {
    const at = bytes.indexOf(line, from)
    return at === -1 ? [] : [at + line.length]
  })
  return ends.length === 0 ? -1 : Math.min(...ends)
}

const emptyLines = ['\n\n', '\n\r\n', '\r\r'].map((line) => Buffer.from(line))
