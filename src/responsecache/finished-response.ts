import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { readJson } from '../json/read-json.ts'
import { errorEvents, lastEvents } from '../openai/answer-reader.ts'
import { readTimings, readUsage, type TokenUsage } from '../openai/usage.ts'
import type { CachedResponse } from './response-cache.ts'
import type { ResponseForm } from './response-key.ts'

/** A whole response. */
type FinishedResponse = Pick<CachedResponse, 'usage'>

/**
 * Reads the whole body of a response with status 200. Undefined when it does not end as a successful response does:
 * JSON that is cut or reports an error; a stream with an error in it or without its last event (`data: [DONE]`; in the
 * responses API `response.completed` or `response.incomplete`); a response that the engine gave up.
 */
export const readFinishedResponse = (response: {
  readonly form: ResponseForm
  readonly body: Buffer
}): FinishedResponse | undefined => {
  const text = decode(response.body)
  if (text === undefined) return undefined
  return response.form === 'json' ? readJsonResponse(readJson(text)) : readStream(text)
}

const decoder = new TextDecoder('utf-8', { fatal: true })

const decode = (body: Buffer): string | undefined => {
  try {
    return decoder.decode(body)
  } catch {
    return undefined
  }
}

const readJsonResponse = (response: unknown): FinishedResponse | undefined =>
  isWhole(response) && isGood(response) ? { usage: usageOf(response) } : undefined

/** A completion or chat has choices, each of which says why it ended; a response has a status. */
const isWhole = (response: unknown): boolean => {
  const choices = member(response, 'choices')
  return Array.isArray(choices)
    ? choices.length > 0 && choices.every((choice) => typeof member(choice, 'finish_reason') === 'string')
    : finalStates.has(member(response, 'status'))
}

const finalStates: ReadonlySet<unknown> = new Set(['completed', 'incomplete'])

/** No error, and no choice that was given up. */
const isGood = (response: unknown): boolean => {
  const choices = member(response, 'choices')
  const endings = Array.isArray(choices) ? choices.map((choice) => member(choice, 'finish_reason')) : []
  return (member(response, 'error') ?? null) === null && !endings.some((ending) => badEndings.has(ending))
}

const badEndings: ReadonlySet<unknown> = new Set(['abort', 'error'])

/** Tokens come as events by the thousand: only those are parsed that may say something about the response. */
const mayTell = /"(?:usage|timings|error|abort)"/

const readStream = (text: string): FinishedResponse | undefined => {
  // Some engines end a failed stream with a field that is none.
  if (/^error:/m.test(text)) return undefined
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => void events.push(event) })
  parser.feed(text)
  const last = events.at(-1)
  if (last === undefined || !(last.data === '[DONE]' || lastEvents.has(last.event))) return undefined
  if (events.some((event) => errorEvents.has(event.event))) return undefined
  const telling = events.filter(({ data }) => mayTell.test(data)).map(({ data }) => readJson(data))
  if (!telling.every(isGood)) return undefined
  return { usage: telling.map(usageOf).findLast((usage) => usage !== undefined) }
}

/** Counts of a parsed response, or of an event of a streamed one. */
const usageOf = (response: unknown): TokenUsage | undefined =>
  readUsage(member(response, 'usage') ?? member(member(response, 'response'), 'usage')) ??
  readTimings(member(response, 'timings'))

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A member of a parsed JSON object; undefined where there is none, or no object. */
const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined
