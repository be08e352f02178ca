import type { SessionKey, TenantKey } from './session-record.ts'
import type { WholeSession } from './session-store.ts'

/** By how many characters of its key a tenant is known to operators: 132 bits, as Redis keeps no more. */
const nameLength = 22

/** A tenant as operators name it: the first 22 characters of its key, an HMAC that leads back to no credential. */
export type TenantName = string & { readonly __brand: 'TenantName' }

/** Undefined: the text is no tenant's name. */
export const tenantNameOf = (text: string): TenantName | undefined => {
  const name = text.slice(0, nameLength)
  return /^[A-Za-z0-9_-]{22}$/.test(name) ? (name as TenantName) : undefined
}

/** The tenant's name, by which stores find what it has. */
export const nameOfTenant = (tenant: TenantKey | TenantName): string => tenant.slice(0, nameLength)

/** A part of the sessions. `next`: where the following part begins; undefined: this was the last one. */
export interface DirectoryPage {
  readonly records: readonly WholeSession[]
  readonly next: string | undefined
}

/**
 * The sessions of all tenants, for operators alone: no request of a client comes here. `tenant` of a record may be the
 * tenant's name instead of its key: the store takes either.
 * @throws StoreUnavailableError as SessionStore does.
 */
export interface SessionDirectory {
  /** The live session of this key, whoever owns it. */
  find(key: SessionKey): Promise<WholeSession | undefined>
  /**
   * Live sessions of a tenant, newest first, or of all, in an order that the store chooses. `limit` 1 to 100; a page may
   * hold fewer. Sessions that begin or end meanwhile may be left out or come twice.
   */
  page(query: {
    readonly tenant: TenantName | undefined
    readonly limit: number
    /** `next` of the page before; any other text begins anew. */
    readonly after: string | undefined
  }): Promise<DirectoryPage>
  /** How many live sessions of a tenant clients' own names choose. One that has ended without a sweep may be counted. */
  countNamed(tenant: TenantName): Promise<number>
}
