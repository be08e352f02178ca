import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const [keyBytes, nonceBytes, tagBytes] = [32, 12, 16]

/**
 * A key for each purpose and each `salt` within it (HKDF, RFC 5869). All gateways of a deployment share `secret`. With a
 * Buffer, Node.js 24 would make the KeyObject for each use, some 15 µs.
 */
export const deriveKey = (secret: string, purpose: string, salt = ''): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, salt, purpose, keyBytes)))

/** Encrypts with AES-256-GCM under a random nonce: nonce, content, tag. Only the same key and `name` open it. */
export const seal = (key: KeyObject, content: Uint8Array, name = ''): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(name))
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** Undefined: sealed with another key or name, or damaged. */
export const open = (key: KeyObject, sealed: Uint8Array, name = ''): Buffer | undefined => {
  if (sealed.length < nonceBytes + tagBytes) return undefined
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
    .setAAD(Buffer.from(name))
    .setAuthTag(sealed.subarray(-tagBytes))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, -tagBytes)), decipher.final()])
  } catch {
    return undefined
  }
}
