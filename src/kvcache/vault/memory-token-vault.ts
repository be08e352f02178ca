import { LRUCache } from 'lru-cache'
import type { TokenVault } from './token-vault.ts'
import { openEntry, sealEntry } from './vault-cipher.ts'
import { toTtlMs } from './vault-ttl.ts'

export interface MemoryTokenVaultOptions {
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
export const createMemoryTokenVault = ({
  maxBytes,
  now = () => performance.now(),
}: MemoryTokenVaultOptions): MemoryTokenVault => {
  const entries = new LRUCache<string, Buffer>({
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
    // An entry that was written at time 0 would never expire.
    perf: { now: () => now() + 1 },
    ttlResolution: 0,
  })
  return {
    put: async (entry, ttlMs) => {
      const sealed = await sealEntry(entry)
      if (entries.calculatedSize + sizeOf(sealed, entry.name) > maxBytes) entries.purgeStale()
      entries.set(entry.name, sealed, { ttl: toTtlMs(ttlMs) })
    },
    get: async (name, contentKey) => {
      const sealed = entries.get(name)
      return sealed === undefined ? undefined : await openEntry(sealed, { name, contentKey })
    },
    delete: async (names) => {
      for (const name of names) entries.delete(name)
    },
    get size() {
      return entries.size
    },
  }
}

const sizeOf = (sealed: Buffer, name: string): number => sealed.length + Buffer.byteLength(name)
