import { createHash } from 'node:crypto'
import { nanoid } from 'nanoid'
import type { SessionKey } from '../sessions/session-record.ts'

const idForm = /^ctx_[A-Za-z0-9_-]{32}$/

/** A new session id: `ctx_` and 32 characters of 192 random bits. It is the only proof of having created the session besides the credential. */
export const newSessionId = (): string => `ctx_${nanoid(32)}`

/** Whether an id is of this gateway's form. Others belong to other clients and gateways, which use the same header. */
export const isSessionId = (value: string): boolean => idForm.test(value)

/** The form in which an id may be stored, logged and passed on. */
export const sessionKeyOf = (id: string): SessionKey =>
  createHash('sha256').update(id).digest('base64url') as SessionKey
