import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { readJson } from '../json/read-json.ts'

/**
 * Seals what a connector claims for a turn: a claim travels through Envoy's metadata and access log to the gateway that ends the turn, and may
 * hold salts. AES-256-GCM with a key derived from the tenant secret (HKDF, RFC 5869); bound to the turn.
 */
export interface ClaimSeal {
  /** `claim` is a JSON value. */
  seal(turnId: string, claim: unknown): string
  /** Undefined: the text is damaged, belongs to another turn, or was sealed with another secret. */
  open(turnId: string, sealed: string): unknown
}

const algorithm = 'aes-256-gcm'
const [keyBytes, nonceBytes, tagBytes] = [32, 12, 16]

/** `secret` is the tenant secret, which all gateways of a deployment share. */
export const createClaimSeal = (secret: string): ClaimSeal => {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'context-cache claim seal', keyBytes))
  const options = { authTagLength: tagBytes }
  return {
    seal: (turnId, claim) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key, nonce, options).setAAD(Buffer.from(turnId))
      const content = Buffer.concat([cipher.update(JSON.stringify(claim)), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), content]).toString('base64url')
    },
    open: (turnId, sealed) => {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes.length < nonceBytes + tagBytes) return undefined
      const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), options)
        .setAAD(Buffer.from(turnId))
        .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
      try {
        const content = [decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]
        return readJson(Buffer.concat(content).toString())
      } catch {
        return undefined
      }
    },
  }
}
