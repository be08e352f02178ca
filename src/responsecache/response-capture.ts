import { isEventStream, isJson } from '../openai/answer-reader.ts'
import { createResponseCheck } from './finished-response.ts'
import { ownCopy, type ResponseCache } from './response-cache.ts'
import { isOfTenant, type ResponseForm, type ResponseKey } from './response-key.ts'

/** Collects one response as it passes, and caches it if it is whole. */
export interface ResponseCapture {
  /** The response begins. `enough`: the rest of it is not needed. */
  head(status: number, header: (name: string) => readonly string[]): 'more' | 'enough'
  /** A piece of its body, in order; `bytes` are only valid during the call. */
  chunk(bytes: Buffer): 'more' | 'enough'
  /**
   * Call it once, whatever happened before: it releases all memory. `complete`: the response was received in full.
   * `broken`: it was not, or its end is not known.
   */
  end(how: 'complete' | 'broken'): void
}

/** Begins to collect the response to a request; undefined when there is no room for another. */
export type BeginCapture = (request: {
  readonly key: ResponseKey
  readonly form: ResponseForm
}) => ResponseCapture | undefined

/** Memory of a piece beside its bytes. */
const pieceOverheadBytes = 256

/**
 * Collects responses for `cache`. One takes up to `maxEntryBytes` together with its request, and all that are being
 * collected share `maxBytes`. A response beyond either, and one that is no plain, whole success, is dropped.
 */
export const createResponseCaptures = (options: {
  readonly cache: Pick<ResponseCache, 'keep'>
  readonly maxBytes: number
  readonly maxEntryBytes: number
}) => {
  let heldBytes = 0
  /** Keys of the requests whose responses are being collected and may be kept. */
  const wanted = new Set<ResponseKey>()

  const hold = (bytes: number): boolean => {
    if (heldBytes + bytes > options.maxBytes) return false
    heldBytes += bytes
    return true
  }

  const begin: BeginCapture = ({ key, form }) => {
    const isOfForm = form === 'stream' ? isEventStream : isJson
    const requestBytes = key.identity.length
    const maxBytes = options.maxEntryBytes - requestBytes
    if (maxBytes <= 0 || !hold(requestBytes)) return undefined
    wanted.add(key)
    const check = createResponseCheck(form)
    let pieces: Buffer[] = []
    let length = 0
    let contentType: string | undefined
    let expectedBytes: number | undefined

    const drop = (): void => {
      contentType = undefined
      heldBytes -= length + pieces.length * pieceOverheadBytes
      pieces = []
      length = 0
    }

    const keepIfWhole = (): void => {
      if (!wanted.has(key) || contentType === undefined || (expectedBytes ?? length) !== length) return
      const body = Buffer.concat(pieces, length)
      const finished = check.end(body)
      if (finished !== undefined) options.cache.keep(key, { contentType, body, usage: finished.usage })
    }

    return {
      head: (status, header) => {
        const [type = '', ...others] = header('content-type')
        const isPlain = header('content-encoding').every((value) => value === 'identity')
        const mayBeKept = !/\bno-store\b/i.test(header('cache-control').join())
        if (status !== 200 || others.length > 0 || !isOfForm(type) || !isPlain || !mayBeKept) return 'enough'
        expectedBytes = lengthOf(header('content-length')[0])
        if ((expectedBytes ?? 0) > maxBytes) return 'enough'
        contentType = type
        return 'more'
      },
      chunk: (bytes) => {
        const fits = length + bytes.length <= maxBytes
        if (contentType === undefined || !fits || !hold(bytes.length + pieceOverheadBytes)) {
          drop()
          return 'enough'
        }
        check.chunk(bytes)
        pieces.push(ownCopy(bytes))
        length += bytes.length
        return 'more'
      },
      end: (how) => {
        if (how === 'complete') keepIfWhole()
        drop()
        wanted.delete(key)
        heldBytes -= requestBytes
      },
    }
  }

  /** Memory that captures hold now. */
  const bytes = (): number => heldBytes

  /** No response that is being collected for this tenant will be kept. `tenant` as {@link ResponseCache.forget} takes it. */
  const forget = (tenant: string): void => {
    for (const key of wanted) if (isOfTenant(key, tenant)) wanted.delete(key)
  }
  return { begin, bytes, forget }
}

const lengthOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined
