import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Encrypts token ids for one artefact: AES-256-GCM, key by HKDF (RFC 5869) from the tenant secret. */
export interface TokenCipher {
  seal(artefactId: string, tokens: Uint32Array): Buffer
  /** Undefined: sealed with another secret or for another artefact, or damaged. */
  open(artefactId: string, sealed: Uint8Array): Uint32Array | undefined
}

const algorithm = 'aes-256-gcm'
const [keyBytes, nonceBytes, tagBytes] = [32, 12, 16]

/** `secret` is the tenant secret, which all gateways of a deployment share. */
export const createTokenCipher = (secret: string): TokenCipher => {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'context-cache token vault', keyBytes))
  return {
    seal: (artefactId, tokens) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(artefactId))
      const content = Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength)
      return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
    },
    open: (artefactId, sealed) => {
      if (sealed.length < nonceBytes + tagBytes) return undefined
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
        .setAAD(Buffer.from(artefactId))
        .setAuthTag(sealed.subarray(-tagBytes))
      const content = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
      try {
        decipher.final()
      } catch {
        return undefined
      }
      // A Uint32Array needs an offset that is a multiple of 4, which a slice has.
      return new Uint32Array(Uint8Array.from(content).buffer)
    },
  }
}
