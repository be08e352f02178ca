import type { TenantKey } from '../session-record.ts'
import type { MemorySession } from './memory-session.ts'

interface TenantList {
  /** By rising sequence; sessions that have ended stay until they are more than half. */
  sessions: MemorySession[]
  endedCount: number
}

/** Each tenant's sessions in the order of their creation. */
export class TenantLists {
  readonly #lists = new Map<TenantKey, TenantList>()

  /** Adds a session whose sequence is higher than that of every other. */
  add(session: MemorySession): void {
    const list = this.#lists.get(session.tenant) ?? { sessions: [], endedCount: 0 }
    this.#lists.set(session.tenant, list)
    list.sessions.push(session)
  }

  /** To be called once for a session that is not live any more. */
  delete({ tenant }: MemorySession): void {
    const list = this.#lists.get(tenant)
    if (list === undefined) return
    list.endedCount += 1
    if (list.endedCount === list.sessions.length) this.#lists.delete(tenant)
    else if (list.endedCount * 2 > list.sessions.length) {
      list.sessions = list.sessions.filter(({ isLive }) => isLive)
      list.endedCount = 0
    }
  }

  /** A tenant's live sessions below this sequence, newest first. No session may be added or ended meanwhile. */
  *newestFirst(tenant: TenantKey, belowSequence: number): Generator<MemorySession> {
    const sessions = this.#lists.get(tenant)?.sessions ?? []
    for (let at = countBelow(sessions, belowSequence) - 1; at >= 0; at -= 1) {
      const session = sessions[at]
      if (session?.isLive === true) yield session
    }
  }
}

/** How many of the sessions have a lower sequence. */
const countBelow = (sessions: readonly MemorySession[], sequence: number): number => {
  let low = 0
  let high = sessions.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sessions[middle]?.sequence ?? 0) < sequence) low = middle + 1
    else high = middle
  }
  return low
}
