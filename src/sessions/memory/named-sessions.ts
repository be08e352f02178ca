import type { SessionKey, TenantKey } from '../session-record.ts'
import type { MemorySession } from './memory-session.ts'

/** Each tenant's sessions that clients' names choose, the least recently used first. */
export class NamedSessions {
  readonly #tenants = new Map<TenantKey, Map<SessionKey, MemorySession>>()

  count(tenant: TenantKey): number {
    return this.#tenants.get(tenant)?.size ?? 0
  }

  /** Adds a session, or makes it the most recently used one. */
  touch(session: MemorySession): void {
    const sessions = this.#tenants.get(session.tenant) ?? new Map<SessionKey, MemorySession>()
    this.#tenants.set(session.tenant, sessions)
    sessions.delete(session.key)
    sessions.set(session.key, session)
  }

  delete({ tenant, key }: MemorySession): void {
    const sessions = this.#tenants.get(tenant)
    if (sessions?.delete(key) === true && sessions.size === 0) this.#tenants.delete(tenant)
  }

  /** Sessions may end meanwhile. */
  leastRecentlyUsed(tenant: TenantKey): Iterable<MemorySession> {
    return this.#tenants.get(tenant)?.values() ?? []
  }
}
