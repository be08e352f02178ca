import type { SlicedWork } from '../async/slices.ts'
import type { InferenceApi } from './create-body.ts'
import { findBytes } from './find-bytes.ts'

/** How many contents are looked at. A longer prompt has the marks of its first messages. */
const maxLooks = 2048
/** Of a body, how much is looked at. */
export const maxMarkedBytes = 4_194_304
/** Most marks of a prompt: those of its last messages. A turn adds fewer. */
const maxMarks = 64
/** Of a message, how many bytes a mark covers. */
const textBytes = 256
/** Of a value in front of which no text is found, such as null or a picture. */
const otherBytes = 32
/** From a member's name to the end of what is read of its value. */
const lookBytes = 320
/** The same for what comes before the messages. */
const introductionBytes = 1024
/** Messages per slice, at most 2 ms. */
const messagesAtOnce = 128

const content = Buffer.from('"content"')
const prompt = Buffer.from('"prompt"')
const input = Buffer.from('"input"')

/** Where an API has a place of its own for what comes before the messages. */
const introductions: Partial<Record<InferenceApi, Buffer>> = {
  messages: Buffer.from('"system"'),
  responses: Buffer.from('"instructions"'),
}

/**
 * Marks by which prompts under one name are told apart, without parsing them: one for each message, a hash of how the
 * messages up to it begin. A prompt that another one continues ends with a mark that the longer one has too. What clients
 * change from turn to turn is left out: the ends of messages, `cache_control`, and whether a text stands in a list. Where
 * the API has a place for what comes before the messages, all marks depend on how that begins. A prompt without messages
 * has one mark, of its beginning. In slices. `deploy/envoy/session-names.lua` does the same.
 */
export function* promptMarks(whole: Buffer, api: InferenceApi): SlicedWork<readonly string[]> {
  const body = whole.subarray(0, maxMarkedBytes)
  const introduction = introductions[api]
  const marks: string[] = []
  let state = introduction === undefined ? 0 : mix(0, yield* firstOf(body, introduction, introductionOf))
  yield* visitValues(body, content, (from) => {
    const head = headOf(body, from)
    if (head === undefined) return false
    state = mix(state, head)
    marks.push(markOf(state))
    return false
  })
  if (marks.length > 0) return marks.slice(-maxMarks)
  const text = (yield* firstOf(body, prompt, headOf)) || (yield* firstOf(body, input, headOf))
  return [markOf(mix(state, text))]
}

/** What a mark covers of the value behind a member's name. Undefined: it is no message's content. */
const headOf = (body: Buffer, from: number): string | undefined => {
  const value = valueIn(body, from, lookBytes)
  // The schema of a tool may have a property of this name.
  if (value === undefined || value.startsWith('{')) return undefined
  const [, text] = /^"(.*)$/s.exec(value) ?? /^\[[^\]]*?"text"[ \t\r\n]*:[ \t\r\n]*"(.*)$/s.exec(value) ?? []
  return text === undefined ? value.slice(0, otherBytes).replace(/\}.*/s, '') : untilQuote(text)
}

/** Of what comes before the messages: of a list all that fits, without the line that `changing-line.ts` is about. */
const introductionOf = (body: Buffer, from: number): string | undefined => {
  const value = valueIn(body, from, introductionBytes)
  if (value?.startsWith('[') !== true) return headOf(body, from)
  return value.replace(/"x-anthropic-billing-header:[^"]*"/, '""').replace(/\].*/s, '')
}

const valueIn = (body: Buffer, from: number, bytes: number): string | undefined =>
  /^[ \t\r\n]*:[ \t\r\n]*(.*)$/s.exec(body.toString('latin1', from, from + bytes))?.[1]

const untilQuote = (text: string): string => {
  const [before = ''] = /^(?:[^"\\]|\\.)*/s.exec(text) ?? []
  return before.slice(0, textBytes)
}

/** What `read` finds behind the first of a member's names that has such a value. */
function* firstOf(
  body: Buffer,
  name: Buffer,
  read: (body: Buffer, from: number) => string | undefined,
): SlicedWork<string> {
  let head: string | undefined
  yield* visitValues(body, name, (from) => {
    head = read(body, from)
    return head !== undefined
  })
  return head ?? ''
}

/** Calls `visit` with the place behind each of a member's names, until it returns true. */
function* visitValues(body: Buffer, name: Buffer, visit: (from: number) => boolean): SlicedWork<void> {
  let at = yield* findBytes(body, name)
  for (let looked = 1; at !== -1 && looked <= maxLooks; looked += 1) {
    if (visit(at + name.length)) return
    at = yield* findBytes(body, name, at + name.length)
    if (looked % messagesAtOnce === 0) yield
  }
}

/** 32 bits: few prompts run under one name, and a wrong guess costs a miss. */
const mix = (state: number, head: string): number => {
  let mixed = mixOne(state, 256)
  for (let at = 0; at < head.length; at += 4) {
    // Four bytes at once; a code behind the end is NaN, which is no bit.
    const code = (beside: number): number => head.charCodeAt(at + beside) << (8 * beside)
    mixed = mixOne(mixed, code(0) | code(1) | code(2) | code(3))
  }
  return mixed
}

/** No product exceeds 2^51, so that Lua's numbers give the same. */
const mixOne = (state: number, value: number): number => ((((state << 7) | (state >>> 25)) ^ value) * 31 + 17) | 0

const markOf = (state: number): string => (state >>> 0).toString(16).padStart(8, '0')
