import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { membersOf } from '../json/members-of.ts'
import { readJson } from '../json/read-json.ts'
import { errorEvents, lastEvents } from '../openai/answer-reader.ts'
import { readTimings, readUsage, type TokenUsage } from '../openai/usage.ts'
import type { CachedResponse } from './response-cache.ts'
import type { ResponseForm } from './response-key.ts'

/** A whole response. */
type FinishedResponse = Pick<CachedResponse, 'usage'>

/**
 * Finds out whether a response with status 200 is whole. It is not when it does not end as a successful response does:
 * JSON that is cut, reports an error, or is longer than `maxJsonLength`; a stream with an error in it or without
 * its last event (`data: [DONE]`; in the responses API `response.completed` or `response.incomplete`); a response that
 * the engine gave up.
 */
export interface ResponseCheck {
  /** The next piece of the body. */
  chunk(bytes: Buffer): void
  /** Undefined: it is not whole. `body`: all pieces. */
  end(body: Buffer): FinishedResponse | undefined
}

export const createResponseCheck = (form: ResponseForm): ResponseCheck =>
  form === 'json' ? jsonCheck : createStreamCheck()

const jsonCheck: ResponseCheck = {
  chunk: () => {},
  end: (body) => readJsonResponse(readJson(decode(body) ?? '')),
}

const decode = (body: Buffer): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return undefined
  }
}

const readJsonResponse = (response: unknown): FinishedResponse | undefined =>
  isWhole(response) && isGood(response) ? { usage: usageOf(response) } : undefined

/** A completion or chat has choices, each of which says why it ended; a response has a status. */
const isWhole = (response: unknown): boolean => {
  const { choices, status } = membersOf(response)
  return Array.isArray(choices)
    ? choices.length > 0 && choices.every((choice) => typeof membersOf(choice)['finish_reason'] === 'string')
    : finalStates.has(status)
}

const finalStates: ReadonlySet<unknown> = new Set(['completed', 'incomplete'])

/** No error, and no choice that was given up. */
const isGood = (response: unknown): boolean => {
  const { choices, error = null } = membersOf(response)
  const endings = Array.isArray(choices) ? choices.map((choice) => membersOf(choice)['finish_reason']) : []
  return error === null && !endings.some((ending) => badEndings.has(ending))
}

const badEndings: ReadonlySet<unknown> = new Set(['abort', 'error'])

/** Tokens come as events by the thousand: only those are parsed that may say something about the response. */
const mayTell = /"(?:usage|timings|error|abort)"/

/** Reads a stream as it passes: at its end, a long one would hold up all other requests. */
const createStreamCheck = (): ResponseCheck => {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isBroken = false
  let last: EventSourceMessage | undefined
  let usage: TokenUsage | undefined
  const parser = createParser({
    onEvent: (event) => {
      last = event
      const content = mayTell.test(event.data) ? readJson(event.data) : undefined
      isBroken ||= errorEvents.has(event.event) || !isGood(content)
      usage = usageOf(content) ?? usage
    },
    // Some engines end a failed stream with a field that is none.
    onError: ({ field }) => {
      isBroken ||= field === 'error'
    },
  })
  const feed = (bytes?: Buffer): void => {
    try {
      parser.feed(decoder.decode(bytes, { stream: bytes !== undefined }))
    } catch {
      isBroken = true
    }
  }
  return {
    chunk: feed,
    end: () => {
      feed()
      const isWhole = last !== undefined && (last.data === '[DONE]' || lastEvents.has(last.event))
      return isWhole && !isBroken ? { usage } : undefined
    },
  }
}

/** Counts of a parsed response, or of an event of a streamed one. */
const usageOf = (content: unknown): TokenUsage | undefined => {
  const { usage, response, timings } = membersOf(content)
  return readUsage(usage ?? membersOf(response)['usage']) ?? readTimings(timings)
}
