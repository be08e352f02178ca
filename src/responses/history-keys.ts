import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { deriveKey, open, seal } from '../crypto/seal.ts'
import type { TenantKey } from '../sessions/session-record.ts'

/** What the handle of a response or a conversation keeps. */
export interface HandleSecrets {
  /** Key of all nodes of the tree. */
  readonly chainKey: KeyObject
  readonly root: string
  /** Seconds since 1970. */
  readonly createdAt: number
  /** Of a conversation; else empty. */
  readonly metadata: Readonly<Record<string, string>>
}

/**
 * Keys behind ids. The store knows a handle by a MAC of its id. What the handle keeps is sealed under a key that takes
 * the id, the tenant and the gateway's secret, and holds the random key of the chain's texts: neither the store's data
 * nor the secret, nor both, tell a text without an id that leads to it.
 */
export interface HistoryKeys {
  nameOf(tenant: TenantKey, id: string): string
  sealHandle(tenant: TenantKey, id: string, secrets: HandleSecrets): string
  /** Undefined: sealed for another id, tenant or secret, or damaged. */
  openHandle(tenant: TenantKey, id: string, sealed: string): HandleSecrets | undefined
}

export const newChainKey = (): KeyObject => createSecretKey(randomBytes(32))

export const createHistoryKeys = (secret: string, former?: FormerSecret): HistoryKeys => {
  const secretOf = (tenant: TenantKey): string => (former?.has(tenant) === true ? former.secret : secret)
  const idKey = (tenant: TenantKey, id: string): KeyObject =>
    deriveKey(secretOf(tenant), 'response history', `${tenant}\n${id}`)
  return {
    nameOf: (tenant, id) =>
      createHmac('sha256', deriveKey(secretOf(tenant), 'response handle', tenant))
        .update(id)
        .digest('base64url'),
    sealHandle: (tenant, id, { chainKey, ...rest }) => {
      const text = JSON.stringify({ ...rest, chainKey: chainKey.export().toString('base64') })
      return seal(idKey(tenant, id), Buffer.from(text)).toString('base64')
    },
    openHandle: (tenant, id, sealed) => {
      const text = open(idKey(tenant, id), Buffer.from(sealed, 'base64'))
      if (text === undefined) return undefined
      const { chainKey, ...rest } = JSON.parse(text.toString())
      return { ...rest, chainKey: createSecretKey(Buffer.from(chainKey, 'base64')) }
    },
  }
}
