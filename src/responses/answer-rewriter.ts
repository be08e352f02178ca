import type { Slices } from '../async/slices.ts'
import type { JsonLimits } from '../json/scan-json-object.ts'
import { KeptBytes } from '../openai/kept-bytes.ts'
import { eventEnd, hasAnswer, readAnswerEvent } from './answer-event.ts'
import { answerFormOf } from './answer-form.ts'
import { type AnswerObject, type AskedFor, rewriteAnswer } from './answer-object.ts'

/** Memory of all turns under way: bytes of their new items and of what is held back of their answers. */
export interface HeldBytes {
  readonly maxBytes: number
  heldBytes: number
}

export interface AnswerRewriterOptions extends JsonLimits {
  readonly asked: AskedFor
  /** Keeps a whole answer, `response` as the client gets it. False: it could not be kept. Never rejects. */
  readonly keep: (answer: { readonly id: string; readonly response: string }) => Promise<boolean>
  /** A longer answer that is no stream, and a stream with a longer event, passes unchanged and is not kept. */
  readonly maxHeldBytes: number
  readonly memory: HeldBytes
  readonly slices: Slices
}

/**
 * Changes the response to a request as it passes, where Envoy sends it. It must not throw or reject. `end` is called
 * exactly once, and last, however the request or its stream ends.
 */
export interface AnswerRewriter {
  /** The response begins. `pass`: it goes on unchanged, and only `end` follows. */
  head(status: number, header: (name: string) => readonly string[]): 'rewrite' | 'pass'
  /**
   * The next piece of its body, after the one before was returned: what goes on instead, at once or later. `isLast`: the
   * response was received in full, and nothing may be held back. `bytes` may be kept, as they are.
   */
  chunk(bytes: Buffer, isLast: boolean): Buffer | Promise<Buffer>
  /** Nothing more is asked. */
  end(): void
}

const noBytes: Buffer = Buffer.alloc(0)
/** Of an event's end, how much may be in the piece before. */
const seamBytes = 3

/**
 * Makes an answer say what its client asked for, and keeps it when it is complete: before the client sees its end, so
 * that it can be continued at once. Of a stream no more than an event is held back; another answer waits for its end.
 */
export const createAnswerRewriter = (options: AnswerRewriterOptions): AnswerRewriter => {
  const { asked, memory, maxHeldBytes, slices } = options
  const held = new KeptBytes()
  let counted = 0
  let form: 'stream' | 'json' | 'pass' = 'pass'
  let expectedBytes = Number.POSITIVE_INFINITY
  /** The last bytes of a stream that went before. */
  let tail = noBytes

  const count = (bytes: number): void => {
    memory.heldBytes += bytes - counted
    counted = bytes
  }
  const takeHeld = (): Buffer => {
    const pieces = held.take()
    count(0)
    const [only] = pieces
    return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces)
  }
  const hold = (bytes: Buffer): void => {
    if (bytes.length > 0) held.add(bytes)
    count(held.takenBytes)
    if (held.length > maxHeldBytes || memory.heldBytes > memory.maxBytes) form = 'pass'
  }

  /** The final text of a response object. */
  const settle = async (answer: AnswerObject, text: Buffer): Promise<Buffer> => {
    if (!answer.isFinal || !asked.store) return answer.text
    const isKept = answer.id !== undefined && (await options.keep({ id: answer.id, response: answer.text.toString() }))
    if (isKept) return answer.text
    const other = await slices.run(rewriteAnswer(text, { ...asked, store: false }, options))
    return other?.text ?? text
  }

  const rewriteWhole = async (text: Buffer): Promise<Buffer> => {
    const answer = await slices.run(rewriteAnswer(text, asked, options))
    return answer === undefined ? text : settle(answer, text)
  }

  const rewriteEvent = async (event: Buffer): Promise<Buffer> => {
    const read = await slices.run(readAnswerEvent(event, asked, options))
    return read === undefined ? event : read.with(await settle(read.answer, read.original))
  }

  const jsonChunk = (bytes: Buffer, isLast: boolean): Buffer | Promise<Buffer> => {
    hold(bytes)
    if (form === 'pass') return takeHeld()
    return isLast || held.length >= expectedBytes ? rewriteWhole(takeHeld()) : noBytes
  }

  const rewriteEvents = async (events: readonly Buffer[], rest: Buffer): Promise<Buffer> => {
    const pieces: Buffer[] = []
    for (const event of events) pieces.push(hasAnswer(event) ? await rewriteEvent(event) : event)
    return Buffer.concat([...pieces, rest])
  }

  const streamChunk = (bytes: Buffer, isLast: boolean): Buffer | Promise<Buffer> => {
    const seam = Buffer.concat([tail, bytes])
    tail = Buffer.from(seam.subarray(-seamBytes))
    if (eventEnd(seam, 0) === -1 && !isLast) {
      hold(bytes)
      return form === 'stream' ? noBytes : takeHeld()
    }
    const all = held.length === 0 ? bytes : Buffer.concat([takeHeld(), bytes])
    const events: Buffer[] = []
    let from = 0
    for (let end = eventEnd(all, 0); end !== -1; end = eventEnd(all, from)) {
      events.push(all.subarray(from, end))
      from = end
    }
    const rest = all.subarray(from)
    if (!isLast) hold(rest)
    // Of an event that is cut, the bytes received are sent on.
    const after = isLast ? rest : form === 'stream' ? noBytes : takeHeld()
    return events.some(hasAnswer) ? rewriteEvents(events, after) : Buffer.concat([...events, after])
  }

  return {
    head: (status, header) => {
      form = answerFormOf(status, header) ?? 'pass'
      const [length = ''] = header('content-length')
      if (/^\d{1,15}$/.test(length)) expectedBytes = Number(length)
      return form === 'pass' ? 'pass' : 'rewrite'
    },
    chunk: (bytes, isLast) => {
      switch (form) {
        case 'pass':
          return bytes
        case 'json':
          return jsonChunk(bytes, isLast)
        case 'stream':
          return streamChunk(bytes, isLast)
      }
    },
    end: () => {
      form = 'pass'
      held.take()
      count(0)
    },
  }
}
