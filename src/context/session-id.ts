import { createHash, hkdfSync } from 'node:crypto'
import { nanoid } from 'nanoid'
import type { ContentKey } from '../kvcache/vault/token-vault.ts'
import type { SessionKey } from '../sessions/session-record.ts'

const idForm = /^ctx_[A-Za-z0-9_-]{32}$/

/** A new session id: `ctx_` and 32 characters of 192 random bits. It is the only proof of having created the session besides the credential. */
export const newSessionId = (): string => `ctx_${nanoid(32)}`

/** Whether an id is of this gateway's form. Others belong to other clients and gateways, which use the same header. */
export const isSessionId = (value: string): boolean => idForm.test(value)

/** The form in which an id may be stored, logged and passed on. */
export const sessionKeyOf = (id: string): SessionKey =>
  createHash('sha256').update(id).digest('base64url') as SessionKey

/** The key under which what names the session's prompt is kept: whoever has it has presented the id (HKDF, RFC 5869). */
export const contentKeyOf = (id: string): ContentKey =>
  Buffer.from(hkdfSync('sha256', id, '', 'context content key', 32)).toString('base64url') as ContentKey
