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
