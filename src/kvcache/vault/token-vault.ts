/**
 * Keeps what names a session's prefix to an engine, which is the prompt itself: as token ids or as a request body. It is encrypted under a key
 * that only the session id yields, so the store that holds it cannot read it. Entries are written once, and read only to make a load.
 */
export interface TokenVault {
  /**
   * Keeps `content` under a name until it is deleted or `ttlMs` have passed (at least 1); a vault with a size limit may drop it sooner. An entry
   * of that name is replaced. @throws when the store does not answer, or the key is not of 32 bytes
   */
  put(entry: VaultEntry, ttlMs: number): Promise<void>
  /** Undefined: there is no such entry, or it cannot be opened with this key. @throws when the store does not answer */
  get(name: string, contentKey: ContentKey): Promise<Uint8Array | undefined>
  /** Idempotent. @throws when the store does not answer */
  delete(names: readonly string[]): Promise<void>
}

/** 32 bytes, base64url, derived from a raw session id. Never stored and never logged. */
export type ContentKey = string & { readonly __brand: 'ContentKey' }

export interface VaultEntry {
  /** Names the entry in the store in the clear: an artefact or a turn, nothing of a session id. */
  readonly name: string
  readonly contentKey: ContentKey
  readonly content: Uint8Array
}
