import { LRUCache } from 'lru-cache'

/** Tenants that this process knows to be of the other secret. Those it forgets are looked up anew by their next request. */
const maxTenants = 100_000

/**
 * The other secret that is accepted while secrets are rotated, and the tenants whose keys are derived from it. All that
 * belongs to such a tenant stays with that secret: ids, salts and tickets.
 */
export interface FormerSecret {
  readonly secret: string
  /** Whether the tenant is of the other secret. A tenant that nobody has added is not. */
  has(tenant: string): boolean
  add(tenant: string): void
}

export const createFormerSecret = (secret: string | undefined): FormerSecret | undefined => {
  if (secret === undefined) return undefined
  const tenants = new LRUCache<string, true>({ max: maxTenants })
  return { secret, has: (tenant) => tenants.get(tenant) === true, add: (tenant) => void tenants.set(tenant, true) }
}
