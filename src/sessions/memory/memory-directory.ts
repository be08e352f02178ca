import type { DirectoryPage, SessionDirectory } from '../session-directory.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type { SessionPage, WholeSession } from '../session-store.ts'
import { type MemorySession, toRecord } from './memory-session.ts'
import type { SessionTable } from './session-table.ts'

/** Reads the sessions of a table: one, a tenant's, or those of all. */
export class MemoryDirectory {
  readonly #table: SessionTable

  constructor(table: SessionTable) {
    this.#table = table
  }

  find(key: SessionKey, nowMs: number): WholeSession | undefined {
    const session = this.#table.findLive(key, nowMs)
    return session && this.whole(session, nowMs)
  }

  list(tenant: TenantKey, after: SessionKey | undefined, limit: number, nowMs: number): SessionPage {
    const known = after && (this.#table.findLive(after, nowMs) ?? this.#table.findTombstone(after, nowMs))
    const below = known?.tenant === tenant ? known.sequence : Number.POSITIVE_INFINITY
    const sessions = this.#table.newest({ tenant, below, limit: limit + 1 }, nowMs)
    return {
      records: sessions.slice(0, limit).map((session) => this.whole(session, nowMs)),
      hasMore: sessions.length > limit,
    }
  }

  page({ tenant, limit, after }: Parameters<SessionDirectory['page']>[0], nowMs: number): DirectoryPage {
    const below = after !== undefined && /^\d{1,15}$/.test(after) ? Number(after) : Number.POSITIVE_INFINITY
    const sessions = this.#table.newest({ tenant, below, limit }, nowMs)
    const last = sessions.at(-1)
    return {
      records: sessions.map((session) => this.whole(session, nowMs)),
      next: sessions.length < limit || last === undefined ? undefined : String(last.sequence),
    }
  }

  /** With its branches beside the first. */
  whole(session: MemorySession, nowMs: number): WholeSession {
    const branches = this.#table.branchesOf(session.key, session, nowMs).map(toRecord)
    return { ...toRecord(session), branches }
  }
}
