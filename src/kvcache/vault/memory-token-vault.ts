import { LRUCache } from 'lru-cache'
import { createTokenCipher, type TokenVault } from './token-vault.ts'

export interface MemoryTokenVaultOptions {
  /** The tenant secret. */
  readonly secret: string
  /** For the encrypted entries and their names. When it is used up, expired entries go first, then those used least recently. A larger entry is not kept. */
  readonly maxBytes: number
  /** Milliseconds, never negative; only differences count. Default: the process' monotonic clock. */
  readonly now?: () => number
}

/** A vault that tells how much it keeps. */
export interface MemoryTokenVault extends TokenVault {
  /** How many entries there are, expired ones included until they are met. */
  readonly size: number
}

/** A vault for one gateway process. What it holds is encrypted as it would be in Redis: a core dump shows nothing either. */
export const createMemoryTokenVault = (options: MemoryTokenVaultOptions): MemoryTokenVault => {
  const { maxBytes, now = () => performance.now() } = options
  const cipher = createTokenCipher(options.secret)
  const entries = new LRUCache<string, Buffer>({
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
    // An entry that was written at time 0 would never expire.
    perf: { now: () => now() + 1 },
    ttlResolution: 0,
  })
  return {
    put: async (artefactId, tokens, ttlMs) => {
      const sealed = cipher.seal(artefactId, tokens)
      if (entries.calculatedSize + sizeOf(sealed, artefactId) > maxBytes) entries.purgeStale()
      entries.set(artefactId, sealed, { ttl: Math.max(1, ttlMs) })
    },
    get: async (artefactId) => {
      const sealed = entries.get(artefactId)
      return sealed === undefined ? undefined : cipher.open(artefactId, sealed)
    },
    delete: async (artefactId) => void entries.delete(artefactId),
    get size() {
      return entries.size
    },
  }
}

const sizeOf = (sealed: Buffer, name: string): number => sealed.length + Buffer.byteLength(name)
