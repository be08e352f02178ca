import type { StoredResponses } from '../responses/conversations.ts'
import type { DirectoryPage, SessionDirectory, TenantName } from '../sessions/session-directory.ts'
import type { TokenTotals } from '../sessions/session-record.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { promptsOf, totalsOf } from '../sessions/session-totals.ts'
import type { ContextEvents } from './context-events.ts'
import type { Pools } from './pools.ts'
import type { Reaper } from './reaper.ts'
import { removeSession } from './remove-session.ts'

/** What the live sessions of a tenant use. */
export interface TenantUse {
  readonly sessions: number
  /** Of these, as many as clients' own names chose. */
  readonly namedSessions: number
  readonly storedBytes: number
  readonly turns: number
  readonly tokens: TokenTotals
  /** False: there are more sessions than were looked at. `namedSessions` counts all of them. */
  readonly complete: boolean
}

/** What an erasure ended. */
export interface TenantErasure {
  readonly sessions: number
  /** Answers in the response cache of this process, which no other one sees. */
  readonly cachedAnswers: number
  /** False: sessions are left, for another call. */
  readonly complete: boolean
}

/** All of one tenant, for the operators' API. @throws StoreUnavailableError from every method */
export interface TenantOperations {
  /** Looks at {@link maxSessions} sessions at most. A tenant that nobody knows uses nothing. */
  use(tenant: TenantName): Promise<TenantUse>
  /**
   * Deletes all sessions, those included that begin meanwhile, with their KV, whose removal may go on after that, the
   * cached answers, and all kept responses and conversations. May be repeated.
   */
  erase(tenant: TenantName): Promise<TenantErasure>
}

const pageSize = 100
/** One look takes the store no longer than some hundred turns. */
const maxSessions = 10_000
/** The pages of operators are given up after two seconds. */
const maxMs = 1_500

export const createTenantOperations = (parts: {
  readonly store: Pick<SessionStore & SessionDirectory, 'page' | 'countNamed' | 'remove'>
  readonly events: Pick<ContextEvents, 'sessionDeleted' | 'tenantErased'>
  readonly pools: Pick<Pools, 'forget'>
  readonly reaper: Pick<Reaper, 'triggerSweep'>
  /** Drops a tenant's cached answers, and returns how many there were. Undefined: there is no response cache. */
  readonly responseCache?: { readonly forget: (tenant: string) => number } | undefined
  /** Undefined: responses are not kept. */
  readonly responses?: { readonly responses: Pick<StoredResponses, 'forgetTenant'> } | undefined
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
}): TenantOperations => {
  const { store } = parts
  const pageOf = (tenant: TenantName, after?: string): Promise<DirectoryPage> =>
    store.page({ tenant, limit: pageSize, after })

  return {
    use: async (tenant) => {
      const endsAtMs = parts.nowMs() + maxMs
      const namedSessions = await store.countNamed(tenant)
      let page = await pageOf(tenant)
      const sessions = [...page.records]
      while (page.next !== undefined && sessions.length < maxSessions && parts.nowMs() < endsAtMs) {
        page = await pageOf(tenant, page.next)
        sessions.push(...page.records)
      }
      const totals = totalsOf(sessions.flatMap(promptsOf))
      return { sessions: sessions.length, namedSessions, ...totals, complete: page.next === undefined }
    },
    erase: async (tenant) => {
      const endsAtMs = parts.nowMs() + maxMs
      const cachedAnswers = parts.responseCache?.forget(tenant) ?? 0
      await parts.responses?.responses.forgetTenant(tenant)
      let sessions = 0
      let complete = false
      while (!complete && parts.nowMs() < endsAtMs) {
        // From the beginning each time: a session may have begun meanwhile, and the removed ones leave no gap.
        const { records, next } = await pageOf(tenant)
        const removed = await Promise.all(records.map((session) => removeSession(parts, session)))
        sessions += removed.filter((isRemoved) => isRemoved).length
        complete = records.length === 0 && next === undefined
      }
      parts.reaper.triggerSweep()
      const erased = { sessions, cachedAnswers, complete }
      parts.events.tenantErased(tenant, erased)
      return erased
    },
  }
}
