/** Chunks that an artefact needs. `salt` is the namespace of the chunks; `name` is the artefact's own. */
export interface HeldChunks {
  readonly salt: string
  readonly name: string
  readonly chunks: readonly string[]
}

/**
 * Which artefacts need which chunks of KV, where all sessions of one cache salt share chunks. Without a holder, a chunk
 * may be deleted and has no entry. Shared by all gateways. Both operations are idempotent, and atomic for each chunk.
 * @throws from both when the store of the ledger does not answer
 */
export interface ChunkLedger {
  /** The artefact needs these chunks from now on. */
  hold(artefact: HeldChunks): Promise<void>
  /**
   * The artefact no longer needs these chunks. Resolves to those that nobody holds now, in any order, also if the
   * artefact did not hold them: so a removal that was interrupted, or whose ledger was lost, can be repeated.
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
