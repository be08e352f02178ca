import type { OwnedSession, SessionStore } from '../sessions/session-store.ts'
import type { ContextEvents } from './context-events.ts'
import type { Pools } from './pools.ts'

/** Deletes a session, whose KV a sweep removes. False: there is none. @throws StoreUnavailableError */
export const removeSession = async (
  parts: {
    readonly store: Pick<SessionStore, 'remove'>
    readonly events: Pick<ContextEvents, 'sessionDeleted'>
    readonly pools: Pick<Pools, 'forget'>
  },
  { key, tenant }: OwnedSession,
): Promise<boolean> => {
  if (!(await parts.store.remove({ key, tenant }))) return false
  parts.events.sessionDeleted(key)
  parts.pools.forget(key)
  return true
}
