import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { squeeze, unsqueeze } from './squeeze.ts'
import type { ContentKey, VaultEntry } from './token-vault.ts'

/**
 * A sealed entry: one byte for the version of this layout, 12 bytes nonce, the content encrypted with AES-256-GCM, 16 bytes tag. The version and
 * the entry's name are authenticated, so an entry opens under its own name only. Its length tells roughly how long the content is.
 */
const versions = { plain: 1, squeezed: 2 } as const

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const headBytes = 1 + nonceBytes

/**
 * Encrypts an entry's content, compressed where that pays.
 *
 * @throws Error when the content key is not of 32 bytes.
 */
export const sealEntry = async ({ name, contentKey, content }: VaultEntry): Promise<Buffer> => {
  const key = decodeKey(contentKey)
  if (key === undefined) throw new Error(`A content key is not ${keyBytes} bytes long`)
  const squeezed = await squeeze(content)
  const version = Uint8Array.of(squeezed === undefined ? versions.plain : versions.squeezed)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.concat([version, Buffer.from(name)]))
  return Buffer.concat([version, nonce, cipher.update(squeezed ?? content), cipher.final(), cipher.getAuthTag()])
}

/** The content of a sealed entry; undefined when the key or the name is another, or the bytes are damaged or none of ours. */
export const openEntry = async (
  sealed: Uint8Array,
  { name, contentKey }: { readonly name: string; readonly contentKey: ContentKey },
): Promise<Uint8Array | undefined> => {
  const key = decodeKey(contentKey)
  if (key === undefined || sealed.length < headBytes + tagBytes) return undefined
  const content = decrypt(sealed, key, Buffer.from(name))
  switch (sealed[0]) {
    case versions.plain:
      return content
    case versions.squeezed:
      return content === undefined ? undefined : await unsqueeze(content)
    default:
      return undefined
  }
}

const decrypt = (sealed: Uint8Array, key: Uint8Array, name: Uint8Array): Uint8Array | undefined => {
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(1, headBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.concat([sealed.subarray(0, 1), name]))
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  const content = decipher.update(sealed.subarray(headBytes, -tagBytes))
  try {
    return Buffer.concat([content, decipher.final()])
  } catch {
    return undefined
  }
}

const decodeKey = (contentKey: ContentKey): Uint8Array | undefined => {
  const key = Buffer.from(contentKey, 'base64url')
  return key.length === keyBytes ? key : undefined
}
