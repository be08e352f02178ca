/**
 * Which artefacts need which chunks of KV in a store whose chunks are shared between all sessions of one cache salt. A chunk may be deleted when
 * nobody holds it, and it cannot be held while it is being deleted. Shared by all gateway processes. Chunks are named by their hash; all
 * operations are atomic and idempotent. What is neither held, being deleted, open nor unsettled leaves nothing behind.
 * @throws from every operation when the store of the ledger does not answer
 */
export interface ChunkLedger {
  /**
   * Says that a turn begins whose engine may write chunks under the salt: until it is settled, chunks may lie there that no artefact names.
   * After `leaseMs` without `settle` the salt becomes unsettled by itself. Again with the same turn: the lease counts from now.
   */
  open(turn: { readonly salt: string; readonly turnId: string; readonly leaseMs: number }): Promise<void>
  /**
   * The turn is over; `tidy` when an artefact names every chunk that it left, else the salt becomes unsettled. A tidy end that comes after
   * the lease ran out takes nothing back.
   */
  settle(turn: { readonly salt: string; readonly turnId: string; readonly tidy: boolean }): Promise<void>
  /**
   * The artefact needs these chunks from now on, beside those that it holds already. `being-deleted`: some of them, or chunks that `release`
   * took from this very artefact, are on their way out; nothing of this call is held, try again shortly.
   */
  hold(artefact: ChunkHolder & { readonly chunks: readonly string[] }): Promise<'held' | 'being-deleted'>
  /**
   * The artefact needs its chunks no longer. Answers those that nobody else holds, each once and in any order, and keeps them from being held
   * until `deleted`. Again and again the same chunks until then, also to another process. `lastOfSalt`: at this moment no other artefact of the
   * salt holds anything. An unknown artefact holds nothing.
   */
  release(artefact: ChunkHolder): Promise<ReleasedChunks>
  /** What `release` of this holder, or `claimUnheld` under this name, answered is gone from the engines and from the store. */
  deleted(artefact: ChunkHolder): Promise<void>
  /**
   * Those of the chunks that nobody holds, each once, kept from being held until `deleted` of this name. Chunks that another name is deleting
   * are among them, and cannot be held before both are done. Several calls under one name add up. A sweep that is interrupted has to come back
   * under the same name: nobody else ends what it began.
   */
  claimUnheld(sweep: ChunkHolder & { readonly chunks: readonly string[] }): Promise<readonly string[]>
  /** Salts to sweep: a turn of theirs ended untidily, or was never settled in its time. At most `limit`, oldest first. */
  unsettled(limit: number): Promise<readonly UnsettledSalt[]>
  /** The salt was swept. Nothing happens when another turn made it unsettled after `unsettled` was asked. */
  swept(salt: UnsettledSalt): Promise<void>
}

/** Who holds chunks: an artefact, or a sweep, by its unique name. */
export interface ChunkHolder {
  readonly salt: string
  readonly name: string
}

/** What `release` answers. */
export interface ReleasedChunks {
  readonly unheld: readonly string[]
  readonly lastOfSalt: boolean
}

export interface UnsettledSalt {
  readonly salt: string
  /** Tells apart the times that a salt became unsettled. */
  readonly mark: string
  /** How long ago it became so for the first time since it was last swept, milliseconds. */
  readonly ageMs: number
}
