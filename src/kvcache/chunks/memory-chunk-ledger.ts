import type { ChunkLedger } from './chunk-ledger.ts'

/** A ledger that tells how much it keeps. */
export interface MemoryChunkLedger extends ChunkLedger {
  /** How many chunks have a holder. */
  readonly size: number
}

/** A ledger for one gateway process. */
export const createMemoryChunkLedger = (): MemoryChunkLedger => {
  const holders = new Map<string, Set<string>>()
  const keyOf = (salt: string, chunk: string): string => JSON.stringify([salt, chunk])
  return {
    hold: async ({ salt, name, chunks }) => {
      for (const chunk of chunks) {
        const key = keyOf(salt, chunk)
        holders.set(key, (holders.get(key) ?? new Set()).add(name))
      }
    },
    release: async ({ salt, name, chunks }) => {
      const isFree = (chunk: string): boolean => {
        const key = keyOf(salt, chunk)
        const names = holders.get(key)
        names?.delete(name)
        if (names !== undefined && names.size > 0) return false
        holders.delete(key)
        return true
      }
      return [...new Set(chunks)].filter(isFree)
    },
    get size() {
      return holders.size
    },
  }
}
