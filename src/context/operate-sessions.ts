import { within } from '../async/deadline.ts'
import type { DirectoryPage, SessionDirectory } from '../sessions/session-directory.ts'
import type { SessionStore, WholeSession } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'
import type { Pools } from './pools.ts'
import type { Reaper } from './reaper.ts'
import { removeSession } from './remove-session.ts'
import { isSessionId, sessionKeyOf } from './session-id.ts'

/** Sessions of all tenants, for the operators' API. @throws StoreUnavailableError from every method */
export interface SessionOperations {
  /** The live session with this id; who has the id may see it. */
  find(id: string): Promise<WholeSession | undefined>
  /** As {@link SessionDirectory.page}. */
  page(query: Parameters<SessionDirectory['page']>[0]): Promise<DirectoryPage>
  /** Deletes it with its KV. False: there is none. */
  remove(session: Pick<WholeSession, 'key' | 'tenant'>): Promise<boolean>
}

export const createSessionOperations = (
  parts: {
    readonly store: Pick<SessionStore & SessionDirectory, 'find' | 'page' | 'remove'>
    readonly events: Pick<ContextEvents, 'sessionDeleted'>
    readonly pools: Pick<Pools, 'forget'>
    readonly reaper: Pick<Reaper, 'sweepAndWait'>
  },
  /** How long a deletion waits for the removal of the session's KV, which goes on after that. */
  { deleteWaitMs }: { readonly deleteWaitMs: number },
): SessionOperations => ({
  find: async (id) => (isSessionId(id) ? parts.store.find(sessionKeyOf(id)) : undefined),
  page: (query) => parts.store.page(query),
  remove: async (session) => {
    if (!(await removeSession(parts, session))) return false
    await within(deleteWaitMs, parts.reaper.sweepAndWait())
    return true
  },
})
