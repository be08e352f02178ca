import { nameOfTenant, type TenantName } from '../session-directory.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type { MemorySession } from './memory-session.ts'

/** Each tenant's sessions that clients' names choose, the least recently used first. */
export class NamedSessions {
  /** By the tenant's name. */
  readonly #tenants = new Map<string, Map<SessionKey, MemorySession>>()

  count(tenant: TenantKey | TenantName): number {
    return this.#tenants.get(nameOfTenant(tenant))?.size ?? 0
  }

  /** Adds a session, or makes it the most recently used one. */
  touch(session: MemorySession): void {
    const name = nameOfTenant(session.tenant)
    const sessions = this.#tenants.get(name) ?? new Map<SessionKey, MemorySession>()
    this.#tenants.set(name, sessions)
    sessions.delete(session.key)
    sessions.set(session.key, session)
  }

  delete({ tenant, key }: MemorySession): void {
    const sessions = this.#tenants.get(nameOfTenant(tenant))
    if (sessions?.delete(key) === true && sessions.size === 0) this.#tenants.delete(nameOfTenant(tenant))
  }

  /** Sessions may end meanwhile. */
  leastRecentlyUsed(tenant: TenantKey | TenantName): Iterable<MemorySession> {
    return this.#tenants.get(nameOfTenant(tenant))?.values() ?? []
  }
}
