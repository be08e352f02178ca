import { LRUCache } from 'lru-cache'
import type { TokenUsage } from '../openai/usage.ts'
import { isOfTenant, type ResponseKey } from './response-key.ts'

/** A whole response of an engine. */
export interface CachedResponse {
  /** Unchanged, with its parameters. */
  readonly contentType: string
  readonly body: Buffer
  /** Undefined: the response states no usage. */
  readonly usage: TokenUsage | undefined
}

/** Memory of an entry beside its texts: objects, the row of the table, the digest. */
const entryOverheadBytes = 512

interface Entry {
  readonly identity: Buffer
  readonly response: CachedResponse
}

/** A copy with its own memory: a view, or a slice of Node's pool, would retain more bytes than are counted. */
export const ownCopy = (bytes: Buffer): Buffer => {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** Bytes that an entry counts for. */
export const entryBytes = (key: ResponseKey, response: CachedResponse): number =>
  key.identity.length + response.body.length + response.contentType.length + entryOverheadBytes

/** Caches whole responses by exact request, for all models and tenants. What does not fit is left out: no errors. */
export interface ResponseCache {
  /** The response to exactly this request, which becomes the most recently used one; undefined on a miss. */
  lookUp(key: ResponseKey): CachedResponse | undefined
  /** Stores a copy; evicts the least recently used entries for it. `false`: too large, and nothing changed. */
  keep(key: ResponseKey, response: CachedResponse): boolean
  /** Drops what the tenant's requests left; `tenant`: its key, or the first characters of it. Returns how many entries. */
  forget(tenant: string): number
  /** Current size; `bytes` counts against the limit. */
  size(): { readonly entries: number; readonly bytes: number }
}

/** In this process's memory; empty at start. Above `maxBytes` the least recently used entries are evicted. */
export const createMemoryResponseCache = (options: {
  /** Size of all entries, bytes; at least 1. */
  readonly maxBytes: number
  /** Largest size of an entry, which holds a response and its request, bytes. */
  readonly maxEntryBytes: number
  /** An entry was evicted. */
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
    forget: (tenant) => {
      const digests = [...entries.entries()].flatMap(([digest, entry]) => (isOfTenant(entry, tenant) ? [digest] : []))
      for (const digest of digests) entries.delete(digest)
      return digests.length
    },
    size: () => ({ entries: entries.size, bytes: entries.calculatedSize }),
  }
}
