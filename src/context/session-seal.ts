import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { TenantKey } from '../sessions/session-record.ts'

const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts session ids for the session store (AES-256-GCM), so that `GET /v1/context` can name a tenant's sessions while a dump of
 * the store shows no id. The key is derived from the gateway's secret and the tenant (HKDF, RFC 5869).
 */
export interface SessionSeal {
  seal(id: string, tenant: TenantKey): string
  /** The id, or undefined when it was sealed with another secret or damaged. */
  open(sealed: string, tenant: TenantKey): string | undefined
}

export const createSessionSeal = (secret: string): SessionSeal => {
  const keyFor = (tenant: TenantKey): Buffer => Buffer.from(hkdfSync('sha256', secret, tenant, 'session id', 32))
  return {
    seal: (id, tenant) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keyFor(tenant), nonce)
      return Buffer.concat([nonce, cipher.update(id, 'latin1'), cipher.final(), cipher.getAuthTag()]).toString(
        'base64url',
      )
    },
    open: (sealed, tenant) => {
      const bytes = Buffer.from(sealed, 'base64url')
      if (bytes.length <= nonceBytes + tagBytes) return undefined
      const decipher = createDecipheriv('aes-256-gcm', keyFor(tenant), bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAuthTag(bytes.subarray(-tagBytes))
      try {
        return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'latin1') + decipher.final('latin1')
      } catch {
        return undefined
      }
    },
  }
}
