import { readFinishedAnswer } from './finished-answer.ts'
import type { ResponseCache } from './response-cache.ts'
import type { AnswerForm, ResponseKey } from './response-key.ts'

/** Whether the capture needs the rest of the answer. */
export type CaptureWish = 'more' | 'enough'

/** Collects one answer as it passes, and caches it if it is whole. */
export interface AnswerCapture {
  /** The answer begins. */
  head(status: number, header: (name: string) => readonly string[]): CaptureWish
  /** A piece of its body, which is copied. */
  chunk(bytes: Buffer): CaptureWish
  /** Call it once, whatever happened before: it releases all memory. */
  end(how: 'complete' | 'broken'): void
}

/** Begins to collect the answer to a request; undefined when there is no room for another. */
export type BeginCapture = (request: {
  readonly key: ResponseKey
  readonly form: AnswerForm
}) => AnswerCapture | undefined

const contentTypes: Readonly<Record<AnswerForm, RegExp>> = {
  json: /^application\/json\s*(?:;|$)/i,
  stream: /^text\/event-stream\s*(?:;|$)/i,
}

const firstBytes = 4096

/**
 * Collects answers for `cache`. One takes up to `maxEntryBytes` together with its request, and all that are being collected share `maxBytes`.
 * An answer beyond either, and one that is no plain, whole success, is dropped.
 */
export const createAnswerCaptures = (options: {
  readonly cache: Pick<ResponseCache, 'keep'>
  readonly maxBytes: number
  readonly maxEntryBytes: number
}): {
  readonly begin: BeginCapture
  /** Memory that captures hold now. */
  readonly bytes: () => number
} => {
  let takenBytes = 0

  const take = (bytes: number): boolean => {
    if (takenBytes + bytes > options.maxBytes) return false
    takenBytes += bytes
    return true
  }

  const begin: BeginCapture = ({ key, form }) => {
    const requestBytes = key.identity.length
    const maxBytes = options.maxEntryBytes - requestBytes
    if (maxBytes <= 0 || !take(requestBytes)) return undefined
    let buffer: Buffer = Buffer.alloc(0)
    let length = 0
    let contentType: string | undefined
    let expectedBytes: number | undefined

    const makeRoom = (bytes: number): boolean => {
      if (bytes <= buffer.length) return true
      const capacity = Math.min(maxBytes, Math.max(bytes, buffer.length * 2, firstBytes))
      // Both buffers live while one is copied into the other.
      if (bytes > maxBytes || !take(capacity)) return false
      const grown = Buffer.allocUnsafeSlow(capacity)
      buffer.copy(grown, 0, 0, length)
      takenBytes -= buffer.length
      buffer = grown
      return true
    }

    const drop = (): void => {
      contentType = undefined
      takenBytes -= buffer.length
      buffer = Buffer.alloc(0)
      length = 0
    }

    const keepIfWhole = (): void => {
      if (contentType === undefined || (expectedBytes ?? length) !== length) return
      const body = buffer.subarray(0, length)
      const finished = readFinishedAnswer({ form, body })
      if (finished !== undefined) options.cache.keep(key, { contentType, body, usage: finished.usage })
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
        if (contentType === undefined || !makeRoom(length + bytes.length)) {
          drop()
          return 'enough'
        }
        bytes.copy(buffer, length)
        length += bytes.length
        return 'more'
      },
      end: (how) => {
        if (how === 'complete') keepIfWhole()
        drop()
        takenBytes -= requestBytes
      },
    }
  }

  return { begin, bytes: () => takenBytes }
}

const lengthOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
