import type { MemorySession } from './memory-session.ts'
import { heldUntilMs } from './turn-leases.ts'

/** A session's place in a list of sessions by last use. */
export interface Place {
  readonly session: MemorySession
  readonly bytes: number
  readonly group: Group
  older: Place | undefined
  newer: Place | undefined
}

interface Group {
  oldest: Place | undefined
  newest: Place | undefined
}

/**
 * Sessions by last use, in groups by size (powers of two). The victim is, among the least recently used idle session of
 * each group, the one with the greatest product of idle time and bytes.
 */
export class IdleOrder {
  readonly #groups: Group[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  add(session: MemorySession, bytes: number): Place {
    const number = Math.floor(Math.log2(Math.max(1, bytes)))
    this.#groups[number] ??= { oldest: undefined, newest: undefined }
    const place: Place = { session, bytes, group: this.#groups[number], older: undefined, newer: undefined }
    this.#bytes += bytes
    append(place)
    return place
  }

  /** Marks a session as the most recently used. */
  touch(place: Place): void {
    if (place.group.newest === place) return
    unlink(place)
    append(place)
  }

  delete(place: Place): void {
    unlink(place)
    this.#bytes -= place.bytes
  }

  /** The session to evict next; undefined when turns hold all but `spared`. */
  victim(nowMs: number, spared?: MemorySession): MemorySession | undefined {
    let victim: MemorySession | undefined
    let greatest = -1
    this.#groups.forEach((group) => {
      const oldest = this.#oldestIdle(group, nowMs, spared)
      const score = oldest === undefined ? -1 : (nowMs - oldest.session.usedMs) * oldest.bytes
      if (score > greatest) [victim, greatest] = [oldest?.session, score]
    })
    return victim
  }

  /** Sessions in turns become the newest of their group, so that the next search does not meet them again. */
  #oldestIdle(group: Group, nowMs: number, spared: MemorySession | undefined): Place | undefined {
    const last = group.newest
    for (let place = group.oldest; place !== undefined; place = group.oldest) {
      if (place.session !== spared && heldUntilMs(place.session.leases) <= nowMs) return place
      this.touch(place)
      if (place === last) break
    }
    return undefined
  }
}

const append = (place: Place): void => {
  place.older = place.group.newest
  place.newer = undefined
  if (place.group.newest === undefined) place.group.oldest = place
  else place.group.newest.newer = place
  place.group.newest = place
}

const unlink = ({ group, older, newer }: Place): void => {
  if (older === undefined) group.oldest = newer
  else older.newer = newer
  if (newer === undefined) group.newest = older
  else newer.older = older
}
