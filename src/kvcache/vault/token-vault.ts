import { deriveKey, open, seal } from '../../crypto/seal.ts'

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

/** Encrypts token ids for one artefact. */
export interface TokenCipher {
  seal(artefactId: string, tokens: Uint32Array): Buffer
  /** Undefined: sealed with another secret or for another artefact, or damaged. */
  open(artefactId: string, sealed: Uint8Array): Uint32Array | undefined
}

/** `secret` is the tenant secret, which all gateways of a deployment share. */
export const createTokenCipher = (secret: string): TokenCipher => {
  const key = deriveKey(secret, 'context-cache token vault')
  return {
    seal: (artefactId, { buffer, byteOffset, byteLength }) =>
      seal(key, new Uint8Array(buffer, byteOffset, byteLength), artefactId),
    open: (artefactId, sealed) => {
      const content = open(key, sealed, artefactId)
      // A Uint32Array needs an offset that is a multiple of 4, which a copy has.
      return content && new Uint32Array(Uint8Array.from(content).buffer)
    },
  }
}
