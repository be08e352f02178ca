import { heldUntilMs, type TurnLease } from './turn-leases.ts'

/** What the order looks at. */
interface Used {
  readonly leases: readonly TurnLease[]
  /** When a turn last began or ended. */
  readonly usedMs: number
}

/** A session's place in a list of sessions by last use. */
export interface Place<Session> {
  readonly session: Session
  bytes: number
  group: Group<Session>
  older: Place<Session> | undefined
  newer: Place<Session> | undefined
}

interface Group<Session> {
  oldest: Place<Session> | undefined
  newest: Place<Session> | undefined
}

/**
 * Sessions by last use, in groups by size (powers of two). The victim is, among the least recently used idle session of
 * each group, the one with the greatest product of idle time and bytes.
 */
export class IdleOrder<Session extends Used> {
  readonly #groups: Group<Session>[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  add(session: Session, bytes: number): Place<Session> {
    const place: Place<Session> = { session, bytes, group: this.#groupOf(bytes), older: undefined, newer: undefined }
    this.#bytes += bytes
    append(place)
    return place
  }

  /** Marks a session as the most recently used. */
  touch(place: Place<Session>): void {
    unlink(place)
    place.group = this.#groupOf(place.bytes)
    append(place)
  }

  /** Changes the size alone. The session keeps its place, and changes its group when it is used. */
  resize(place: Place<Session>, bytes: number): void {
    this.#bytes += bytes - place.bytes
    place.bytes = bytes
  }

  delete(place: Place<Session>): void {
    unlink(place)
    this.#bytes -= place.bytes
  }

  /** The session to evict next; undefined when turns hold all but `spared`. */
  victim(nowMs: number, spared?: Session): Session | undefined {
    let victim: Session | undefined
    // Below 0 when the clock was set back.
    let greatest = Number.NEGATIVE_INFINITY
    this.#groups.forEach((group) => {
      const oldest = this.#oldestIdle(group, nowMs, spared)
      const score = oldest === undefined ? greatest : (nowMs - oldest.session.usedMs) * oldest.bytes
      if (score > greatest) [victim, greatest] = [oldest?.session, score]
    })
    return victim
  }

  #groupOf(bytes: number): Group<Session> {
    const number = Math.floor(Math.log2(Math.max(1, bytes)))
    this.#groups[number] ??= { oldest: undefined, newest: undefined }
    return this.#groups[number]
  }

  /** Sessions in turns become the newest of their group, so that the next search does not meet them again. */
  #oldestIdle(group: Group<Session>, nowMs: number, spared: Session | undefined): Place<Session> | undefined {
    const last = group.newest
    for (let place = group.oldest; place !== undefined; place = group.oldest) {
      if (place.session !== spared && heldUntilMs(place.session.leases) <= nowMs) return place
      this.touch(place)
      if (place === last) break
    }
    return undefined
  }
}

const append = <Session>(place: Place<Session>): void => {
  place.older = place.group.newest
  place.newer = undefined
  if (place.group.newest === undefined) place.group.oldest = place
  else place.group.newest.newer = place
  place.group.newest = place
}

const unlink = <Session>({ group, older, newer }: Place<Session>): void => {
  if (older === undefined) group.oldest = newer
  else older.newer = newer
  if (newer === undefined) group.newest = older
  else newer.older = older
}
