import { createHmac, hash } from 'node:crypto'
import { nanoid } from 'nanoid'
import type { ContentKey } from '../kvcache/vault/token-vault.ts'
import type { SessionKey } from '../sessions/session-record.ts'

const idForm = /^ctx_[A-Za-z0-9_-]{32}$/
const listedForm = /(?:^|,)[ \t]*ctx_[A-Za-z0-9_-]{32}[ \t]*(?:,|$)/

/** A new session id: `ctx_` and 32 characters of 192 random bits. It is the only proof of having created the session besides the credential. */
export const newSessionId = (): string => `ctx_${nanoid(32)}`

/** Whether an id is of this gateway's form. Others belong to other clients and gateways, which use the same header. */
export const isSessionId = (value: string): boolean => idForm.test(value)

/** Whether one of the values of a header is an id of this gateway, or lists one: what passes a header on may join several into one (RFC 9110, 5.3). */
export const holdsSessionId = (values: readonly string[]): boolean => values.some((value) => listedForm.test(value))

/** The form in which an id may be stored, logged and passed on. */
export const sessionKeyOf = (id: string): SessionKey => hash('sha256', id, 'base64url') as SessionKey

/**
 * The key under which what names the session's prompt is kept: whoever has it has presented the id. One block of HKDF's expansion (RFC 5869, 2.3);
 * an id is random enough to be expanded as it is (3.3).
 */
export const contentKeyOf = (id: string): ContentKey =>
  createHmac('sha256', id).update('context content key\x01').digest('base64url') as ContentKey
