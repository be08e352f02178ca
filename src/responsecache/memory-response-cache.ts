import { LRUCache } from 'lru-cache'
import type { CachedResponse, ResponseCache } from './response-cache.ts'
import type { ResponseKey } from './response-key.ts'

/** What an entry takes beside its texts: objects, the table's row, the digest. */
const entryOverheadBytes = 512

interface Entry {
  readonly identity: Buffer
  readonly response: CachedResponse
}

/** A copy with memory of its own: a view, or a piece of Node's pool, would hold on to more bytes than are counted. */
const ownCopy = (bytes: Buffer): Buffer => {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** What an answer would count for in a cache. */
export const entryBytes = (key: ResponseKey, response: CachedResponse): number =>
  key.identity.length + response.body.length + response.contentType.length + entryOverheadBytes

/**
 * Keeps answers in this process's memory, shared by all models and tenants: each gateway process has its own, and it is empty when a process
 * starts. When `maxBytes` would be exceeded the least recently used entries go.
 */
export const createMemoryResponseCache = (options: {
  /** Texts of requests and answers, and what keeping them takes, bytes; at least 1. */
  readonly maxBytes: number
  /** An answer is kept only if it and its request take no more than this. */
  readonly maxEntryBytes: number
  /** An entry had to go for another one. */
  readonly onEvicted: () => void
}): ResponseCache => {
  const largestBytes = Math.min(options.maxBytes, options.maxEntryBytes)
  const entries = new LRUCache<string, Entry>({
    maxSize: options.maxBytes,
    dispose: (_entry, _digest, reason) => {
      if (reason === 'evict') options.onEvicted()
    },
  })
  return {
    lookUp: ({ digest, identity }) => {
      const entry = entries.get(digest)
      return entry?.identity.equals(identity) === true ? entry.response : undefined
    },
    keep: (key, response) => {
      const size = entryBytes(key, response)
      if (size > largestBytes) return false
      const { contentType, usage } = response
      entries.set(
        key.digest,
        { identity: ownCopy(key.identity), response: { contentType, usage, body: ownCopy(response.body) } },
        { size },
      )
      return true
    },
    size: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
  }
}
