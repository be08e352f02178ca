import type { ResponseKey } from './response-key.ts'

/** A whole answer of an engine, ready to be sent again. */
export interface CachedResponse {
  /** As the engine sent it, with its parameters. */
  readonly contentType: string
  readonly body: Buffer
  /** What the answer says about its tokens; undefined when it says nothing. */
  readonly usage: ResponseUsage | undefined
}

/** Token counts of one answer, as it states them. */
export interface ResponseUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** Keeps whole answers of engines by the exact requests that they belong to. Nothing here fails: what does not fit is not kept. */
export interface ResponseCache {
  /** The answer to exactly this request, which counts as used now; undefined when there is none. */
  lookUp(key: ResponseKey): CachedResponse | undefined
  /** Keeps a copy of an answer and evicts the least recently used ones for it. `false`: it is larger than an entry may be, and nothing changed. */
  keep(key: ResponseKey, response: CachedResponse): boolean
  /** What is kept now; `bytes` is what counts against the limit. */
  size(): { readonly entries: number; readonly bytes: number }
}
