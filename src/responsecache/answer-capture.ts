import type { ByteBudget } from './byte-budget.ts'
import { readFinishedAnswer } from './finished-answer.ts'
import { GrowingBytes } from './growing-bytes.ts'
import type { ResponseCache } from './response-cache.ts'
import type { AnswerForm, ResponseKey } from './response-key.ts'

/** Whether the rest of an answer is of use. */
export type CaptureWish = 'more' | 'enough'

/** Collects one answer as it goes by, and keeps it when it turns out whole. */
export interface AnswerCapture {
  /** The answer begins. */
  head(status: number, header: (name: string) => readonly string[]): CaptureWish
  /** A piece of its body, which is copied. */
  chunk(bytes: Buffer): CaptureWish
  /** Nothing more comes, or nobody looks any more. To be called once, whatever happened before; gives all memory back. */
  end(how: 'complete' | 'broken'): void
}

/** Begins to collect the answer to a request; undefined when there is no room for another one. */
export type BeginCapture = (request: {
  readonly key: ResponseKey
  readonly form: AnswerForm
}) => AnswerCapture | undefined

const contentTypes: Readonly<Record<AnswerForm, RegExp>> = {
  json: /^application\/json\s*(?:;|$)/i,
  stream: /^text\/event-stream\s*(?:;|$)/i,
}

/**
 * Collects answers for `cache`. One takes up to `maxEntryBytes` together with its request, and all that are being collected share `budget`;
 * an answer beyond either is let go, and so is every one that is not a plain, whole success.
 */
export const createAnswerCaptures =
  (parts: {
    readonly cache: ResponseCache
    readonly budget: ByteBudget
    readonly maxEntryBytes: number
  }): BeginCapture =>
  ({ key, form }) => {
    const requestBytes = key.identity.length
    const maxBytes = parts.maxEntryBytes - requestBytes
    if (maxBytes <= 0 || !parts.budget.take(requestBytes)) return undefined
    const body = new GrowingBytes({ budget: parts.budget, maxBytes })
    let contentType: string | undefined
    let expectedBytes: number | undefined

    const keepIfWhole = (): void => {
      if (contentType === undefined) return
      const view = body.view()
      if (expectedBytes !== undefined && expectedBytes !== view.length) return
      const finished = readFinishedAnswer({ form, body: view })
      if (finished !== undefined) parts.cache.keep(key, { contentType, body: view, usage: finished.usage })
    }

    return {
      head: (status, header) => {
        const [type = '', ...others] = header('content-type')
        const isPlain = header('content-encoding').every((value) => value === 'identity')
        const mayBeKept = !/\bno-store\b/i.test(header('cache-control').join())
        if (status !== 200 || others.length > 0 || !contentTypes[form].test(type) || !isPlain || !mayBeKept)
          return 'enough'
        expectedBytes = lengthOf(header('content-length')[0])
        if ((expectedBytes ?? 0) > maxBytes) return 'enough'
        contentType = type
        return 'more'
      },
      chunk: (bytes) => {
        if (contentType !== undefined && body.append(bytes)) return 'more'
        contentType = undefined
        body.release()
        return 'enough'
      },
      end: (how) => {
        if (how === 'complete') keepIfWhole()
        contentType = undefined
        body.release()
        parts.budget.give(requestBytes)
      },
    }
  }

const lengthOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
