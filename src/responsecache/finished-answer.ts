import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { readJson } from '../json/read-json.ts'
import type { ResponseUsage } from './response-cache.ts'
import type { AnswerForm } from './response-key.ts'

/** What a whole answer says about itself. */
export interface FinishedAnswer {
  readonly usage: ResponseUsage | undefined
}

/**
 * Reads the whole body of an answer with status 200. Undefined when it does not end as a successful answer does: JSON that is cut or tells of
 * an error, a stream without its last event (`data: [DONE]`; `response.completed` or `response.incomplete` in the responses API) or with an
 * error in it, or one that the engine gave up.
 */
export const readFinishedAnswer = (answer: {
  readonly form: AnswerForm
  readonly body: Buffer
}): FinishedAnswer | undefined => {
  const text = decode(answer.body)
  if (text === undefined) return undefined
  return answer.form === 'json' ? readJsonAnswer(readJson(text)) : readStream(text)
}

const decoder = new TextDecoder('utf-8', { fatal: true })

const decode = (body: Buffer): string | undefined => {
  try {
    return decoder.decode(body)
  } catch {
    return undefined
  }
}

const readJsonAnswer = (answer: unknown): FinishedAnswer | undefined =>
  isWhole(answer) && isGood(answer) ? { usage: readUsage(answer) } : undefined

/** A completion or chat has choices, each of which says why it ended; a response has a status. */
const isWhole = (answer: unknown): boolean => {
  const choices = member(answer, 'choices')
  return Array.isArray(choices)
    ? choices.length > 0 && choices.every((choice) => typeof member(choice, 'finish_reason') === 'string')
    : finalStates.has(member(answer, 'status'))
}

const finalStates: ReadonlySet<unknown> = new Set(['completed', 'incomplete'])

/** No error, and no choice that was given up. */
const isGood = (answer: unknown): boolean => {
  const choices = member(answer, 'choices')
  const endings = Array.isArray(choices) ? choices.map((choice) => member(choice, 'finish_reason')) : []
  return (member(answer, 'error') ?? null) === null && !endings.some((ending) => badEndings.has(ending))
}

const badEndings: ReadonlySet<unknown> = new Set(['abort', 'error'])

const lastEvents: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete'])
const errorEvents: ReadonlySet<unknown> = new Set(['error', 'response.failed'])

/** Tokens come as events by the thousand: only those are parsed that may say something about the answer. */
const mayTell = /"(?:usage|timings|error|abort)"/

const readStream = (text: string): FinishedAnswer | undefined => {
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
  return { usage: telling.map(readUsage).findLast((usage) => usage !== undefined) }
}

/** Reads a parsed answer, or an event of a streamed one: OpenAI's `usage` in either spelling, else the `timings` of llama-server. */
const readUsage = (answer: unknown): ResponseUsage | undefined => {
  const usage = member(answer, 'usage') ?? member(member(answer, 'response'), 'usage')
  return isObject(usage) ? fromUsage(usage) : fromTimings(member(answer, 'timings'))
}

const fromUsage = (usage: object): ResponseUsage | undefined => {
  const promptTokens = count(member(usage, 'prompt_tokens')) ?? count(member(usage, 'input_tokens'))
  const outputTokens = count(member(usage, 'completion_tokens')) ?? count(member(usage, 'output_tokens'))
  const details = member(usage, 'prompt_tokens_details') ?? member(usage, 'input_tokens_details')
  if (promptTokens === undefined && outputTokens === undefined) return undefined
  return {
    promptTokens: promptTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    cachedTokens: count(member(details, 'cached_tokens')) ?? 0,
  }
}

/** Its prompt count leaves the reused tokens out. */
const fromTimings = (timings: unknown): ResponseUsage | undefined => {
  const computedTokens = count(member(timings, 'prompt_n'))
  const outputTokens = count(member(timings, 'predicted_n'))
  if (computedTokens === undefined || outputTokens === undefined) return undefined
  const cachedTokens = count(member(timings, 'cache_n')) ?? 0
  return { promptTokens: computedTokens + cachedTokens, outputTokens, cachedTokens }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A member of a parsed JSON object; undefined where there is none, or no object. */
const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
