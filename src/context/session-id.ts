import { createHash, hash } from 'node:crypto'
import { nanoid } from 'nanoid'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { deriveKey, open, seal } from '../crypto/seal.ts'
import type { SessionKey, TenantKey } from '../sessions/session-record.ts'
import type { SessionStore } from '../sessions/session-store.ts'

const idForm = /^ctx_[A-Za-z0-9_-]{32}$/
const listedForm = /(?:^|,)[ \t]*ctx_[A-Za-z0-9_-]{32}[ \t]*(?:,|$)/

/** `ctx_` and 32 characters of 192 random bits. Beside the credential, the only proof of having created the session. */
export const newSessionId = (): string => `ctx_${nanoid(32)}`

/** A new id whose session lies together with `other`: of as many ids as the store has partitions, one does. */
export const newSessionIdBeside = (other: string, store: Pick<SessionStore, 'areTogether'>): string => {
  for (;;) {
    const id = newSessionId()
    if (store.areTogether(sessionKeyOf(id), other)) return id
  }
}

/** Whether an id has this gateway's form. Other forms belong to other clients and gateways that use the same header. */
export const isSessionId = (value: string): boolean => idForm.test(value)

/** Whether a header value is or lists an id of this gateway: proxies may join several values (RFC 9110, 5.3). */
export const containsSessionId = (values: readonly string[]): boolean => values.some((value) => listedForm.test(value))

/** The form in which an id may be stored, logged and passed on. */
export const sessionKeyOf = (id: string): SessionKey => hash('sha256', id, 'base64url') as SessionKey

/** Keeps requests with one id of another system together. Undefined: the id is empty or missing. `id`: bytes as latin1. */
export const foreignKeyOf = (id: string | undefined): string | undefined =>
  id ? createHash('sha256').update(id, 'latin1').digest('base64url') : undefined

/** A session id, and by which kind of a client's name it was chosen; undefined: it was created with a random id. */
export interface NamedSessionId {
  readonly id: string
  readonly namedBy: string | undefined
}

/**
 * Encrypts session ids for the session store so that `GET /v1/context` can name a tenant's sessions while a dump of the
 * store shows no id. Each tenant has a key of its own.
 */
export interface SessionIdCipher {
  /** The form in which the session store keeps an id. `namedBy`: kind of the name that chose it, if any. */
  encrypt(id: string, tenant: TenantKey, namedBy?: string): string
  /** The id, or undefined when it was encrypted with another secret or is damaged. */
  decrypt(encrypted: string, tenant: TenantKey): NamedSessionId | undefined
}

export const createSessionIdCipher = (secret: string, former?: FormerSecret): SessionIdCipher => {
  const keyFor = (tenant: TenantKey) =>
    deriveKey(former?.has(tenant) === true ? former.secret : secret, 'session id', tenant)
  return {
    encrypt: (id, tenant, namedBy) => {
      const text = namedBy === undefined ? id : `${id} ${namedBy}`
      return seal(keyFor(tenant), Buffer.from(text, 'latin1')).toString('base64url')
    },
    decrypt: (encrypted, tenant) => {
      const text = open(keyFor(tenant), Buffer.from(encrypted, 'base64url'))?.toString('latin1')
      if (text === undefined) return undefined
      const [id = '', namedBy] = text.split(' ')
      return { id, namedBy }
    },
  }
}
