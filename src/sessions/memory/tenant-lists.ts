import { nameOfTenant, type TenantName } from '../session-directory.ts'
import type { TenantKey } from '../session-record.ts'
import type { MemorySession } from './memory-session.ts'

interface SessionList {
  /** By rising sequence; sessions that have ended stay until they are more than half. */
  sessions: MemorySession[]
  endedCount: number
}

/** Each tenant's sessions, and all of them, in the order of their creation. */
export class TenantLists {
  /** By the tenant's name. */
  readonly #lists = new Map<string, SessionList>()

  /** Adds a session whose sequence is higher than that of every other. */
  add(session: MemorySession): void {
    for (const name of [everyone, nameOfTenant(session.tenant)]) {
      const list = this.#lists.get(name) ?? { sessions: [], endedCount: 0 }
      this.#lists.set(name, list)
      list.sessions.push(session)
    }
  }

  /** To be called once for a session that is not live any more. */
  delete({ tenant }: MemorySession): void {
    for (const name of [everyone, nameOfTenant(tenant)]) {
      const list = this.#lists.get(name)
      if (list === undefined) continue
      list.endedCount += 1
      if (list.endedCount === list.sessions.length) this.#lists.delete(name)
      else if (list.endedCount * 2 > list.sessions.length) {
        list.sessions = list.sessions.filter(({ isLive }) => isLive)
        list.endedCount = 0
      }
    }
  }

  /** How many live sessions a tenant has. */
  count(tenant: TenantKey): number {
    const { sessions, endedCount } = this.#lists.get(nameOfTenant(tenant)) ?? { sessions: [], endedCount: 0 }
    return sessions.length - endedCount
  }

  /** Live sessions of a tenant, or of all, below this sequence, newest first. None may be added or ended meanwhile. */
  *newestFirst(tenant: TenantKey | TenantName | undefined, belowSequence: number): Generator<MemorySession> {
    const sessions = this.#lists.get(tenant === undefined ? everyone : nameOfTenant(tenant))?.sessions ?? []
    for (let at = countBelow(sessions, belowSequence) - 1; at >= 0; at -= 1) {
      const session = sessions[at]
      if (session?.isLive === true) yield session
    }
  }
}

/** No tenant has this name. */
const everyone = ''

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
