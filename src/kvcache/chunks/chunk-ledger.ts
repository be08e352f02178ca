/** Chunks that an artefact needs. `salt` is the namespace of the chunks; `name` is the artefact's own. */
export interface HeldChunks {
  readonly salt: string
  readonly name: string
  readonly chunks: readonly string[]
}

/**
 * Which artefacts need which chunks of KV in a store whose chunks all sessions of one cache salt share. A chunk that nobody holds may be deleted.
 * Shared by all gateway processes. Both operations are idempotent, and atomic for each chunk. Nothing stays of a chunk without a holder.
 * @throws from both when the store of the ledger does not answer
 */
export interface ChunkLedger {
  /** The artefact needs these chunks from now on. */
  hold(artefact: HeldChunks): Promise<void>
  /**
   * The artefact needs these chunks no longer. Resolves to those of them that nobody holds now, in any order, whether it held them or not: so a
   * removal that was interrupted, or whose ledger was lost, can be repeated.
   */
  release(artefact: HeldChunks): Promise<readonly string[]>
}

/** A ledger for one gateway process. `size`: how many chunks have a holder. */
export const createMemoryChunkLedger = (): ChunkLedger & { readonly size: number } => {
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
