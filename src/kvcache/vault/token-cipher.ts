import { deriveKey, open, seal } from '../../crypto/seal.ts'

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
