import { LRUCache } from 'lru-cache'
import type { SessionKey } from '../sessions/session-record.ts'
import { sessionKeyOf } from './session-id.ts'

/** As many sessions as are in use at a time, in some three megabytes. */
const maxKnown = 10_000

/**
 * `sessionKeyOf` that remembers. A session's next turn comes with the same id, and between two turns a digest takes a twentieth of what a turn keeps the
 * gateway busy with. Ids stay in this process's memory, where every turn brings them in any case.
 */
export const createKnownSessionKeys = (): ((id: string) => SessionKey) => {
  const keys = new LRUCache<string, SessionKey>({ max: maxKnown, memoMethod: (id) => sessionKeyOf(id) })
  return (id) => keys.memo(id)
}
