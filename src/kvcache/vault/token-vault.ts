/**
 * Keeps the token ids of stored prefixes: LMCache unpins by token ids alone. They are the prompt itself, so they are encrypted under a key that
 * only the gateways have; the store that holds them cannot read them.
 */
export interface TokenVault {
  /**
   * Keeps the tokens of an artefact until they are deleted or `ttlMs` have passed (at least 1); a vault with a size limit may drop them sooner.
   * Those of the same artefact are replaced. @throws when the store does not answer
   */
  put(artefactId: string, tokens: Uint32Array, ttlMs: number): Promise<void>
  /** Undefined: there are none, or they were encrypted with another secret, or are damaged. @throws when the store does not answer */
  get(artefactId: string): Promise<Uint32Array | undefined>
  /** Idempotent. @throws when the store does not answer */
  delete(artefactId: string): Promise<void>
}
