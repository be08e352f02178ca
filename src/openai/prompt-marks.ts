import type { SlicedWork } from '../async/slices.ts'
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
/** Messages per slice, at most 2 ms. */
const messagesAtOnce = 128

const content = Buffer.from('"content"')

/**
 * Marks by which prompts under one name are told apart, without parsing them: one for each message, a hash of how the
 * messages up to it begin. A prompt that another one continues ends with a mark that the longer one has too. What clients
 * change from turn to turn is left out: the ends of messages, `cache_control`, and whether a text stands in a list. A
 * prompt without messages has one mark, of its beginning. In slices. `deploy/envoy/session-names.lua` does the same.
 */
export function* promptMarks(whole: Buffer): SlicedWork<readonly string[]> {
  const body = whole.subarray(0, maxMarkedBytes)
  const marks: string[] = []
  let state = 0
  let at = yield* findBytes(body, content)
  for (let looked = 1; at !== -1 && looked <= maxLooks; looked += 1) {
    const head = headOf(body, at + content.length)
    if (head !== undefined) {
      state = mix(state, head)
      marks.push(markOf(state))
    }
    at = yield* findBytes(body, content, at + content.length)
    if (looked % messagesAtOnce === 0) yield
  }
  return marks.length === 0 ? [markOf(mix(0, yield* beginningOf(body)))] : marks.slice(-maxMarks)
}

/** What a mark covers of the value behind a member's name. Undefined: it is no message's content. */
const headOf = (body: Buffer, from: number): string | undefined => {
  const [, value] = /^[ \t\r\n]*:[ \t\r\n]*(.*)$/s.exec(body.toString('latin1', from, from + lookBytes)) ?? []
  // The schema of a tool may have a property of this name.
  if (value === undefined || value.startsWith('{')) return undefined
  const [, text] = /^"(.*)$/s.exec(value) ?? /^\[[^\]]*?"text"[ \t\r\n]*:[ \t\r\n]*"(.*)$/s.exec(value) ?? []
  return text === undefined ? value.slice(0, otherBytes).replace(/\}.*/s, '') : untilQuote(text)
}

const untilQuote = (text: string): string => {
  const [before = ''] = /^(?:[^"\\]|\\.)*/s.exec(text) ?? []
  return before.slice(0, textBytes)
}

/** Of a prompt that is one text. */
function* beginningOf(body: Buffer): SlicedWork<string> {
  for (const name of [Buffer.from('"prompt"'), Buffer.from('"input"')]) {
    const at = yield* findBytes(body, name)
    if (at !== -1) return headOf(body, at + name.length) ?? ''
  }
  return ''
}

/** 32 bits: few prompts run under one name, and a wrong guess costs a miss. */
const mix = (state: number, head: string): number => {
  let mixed = mixOne(state, 256)
  for (let at = 0; at < head.length; at += 1) mixed = mixOne(mixed, head.charCodeAt(at))
  return mixed
}

/** No product exceeds 2^53, so that Lua's numbers give the same. */
const mixOne = (state: number, value: number): number => ((((state << 7) | (state >>> 25)) ^ value) * 31 + 17) | 0

const markOf = (state: number): string => (state >>> 0).toString(16).padStart(8, '0')
