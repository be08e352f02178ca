import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { ContentKey } from '../vault/token-vault.ts'

/**
 * LMCache unpins by token ids alone. A session that expires is removed when nobody presents its id, so the key of its token ids is kept with the
 * artefact, encrypted under the gateway's secret (AES-256-GCM, key by HKDF): neither the store's content nor the secret alone opens them.
 */
export interface UnpinKeys {
  seal(key: ContentKey, artefactId: string): string
  /** Undefined: sealed with another secret, for another artefact, or damaged. */
  open(sealed: string, artefactId: string): ContentKey | undefined
}

const nonceBytes = 12
const tagBytes = 16
const keyBytes = 32

export const createUnpinKeys = (secret: string): UnpinKeys => {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'unpin key', keyBytes))
  return {
    seal: (content, artefactId) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(artefactId))
      const sealed = [nonce, cipher.update(content, 'base64url'), cipher.final(), cipher.getAuthTag()]
      return Buffer.concat(sealed).toString('base64url')
    },
    open: (sealed, artefactId) => {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes.length !== nonceBytes + keyBytes + tagBytes) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
      decipher.setAAD(Buffer.from(artefactId)).setAuthTag(bytes.subarray(-tagBytes))
      try {
        const opened = Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
        return opened.toString('base64url') as ContentKey
      } catch {
        return undefined
      }
    },
  }
}
