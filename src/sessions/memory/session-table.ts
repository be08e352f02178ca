import type { SessionKey, StoredKv, TenantKey } from '../session-record.ts'
import type { RetryKey } from '../session-store.ts'
import { DeadlineHeap } from './deadline-heap.ts'
import { LinkedTable } from './linked-table.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import type { ExpiredTombstone, LiveSession, Tombstone } from './memory-session.ts'
import { RetryKeys } from './retry-keys.ts'
import { SequenceIndex } from './sequence-index.ts'
import { heldUntilMs } from './turn-leases.ts'

export interface SessionTableOptions {
  readonly removals: MemoryRemovals
  /** Live sessions, and the same number of tombstones and of retry keys. */
  readonly maxSessions: number
  readonly tombstoneSeconds: number
  /** Called for every session that had to make room. */
  readonly onEvicted: () => void
}

/** Every session and tombstone, with the indexes over them. Knows how sessions end; what a turn does to one is not its matter. */
export class SessionTable {
  /** The least recently used first. */
  readonly #live = new LinkedTable<SessionKey, LiveSession>()
  /** The oldest first. */
  readonly #tombstones = new LinkedTable<SessionKey, Tombstone>()
  readonly #deadlines = new DeadlineHeap<SessionKey>()
  readonly #tenants = new Map<TenantKey, SequenceIndex<SessionKey>>()
  readonly #artefacts = new Set<string>()
  readonly #retryKeys: RetryKeys
  readonly #options: SessionTableOptions
  #sequence = 0

  constructor(options: SessionTableOptions) {
    this.#options = options
    this.#retryKeys = new RetryKeys({ maxKeys: options.maxSessions })
  }

  get size(): number {
    return this.#live.size
  }

  namesArtefact(artefactId: string): boolean {
    return this.#artefacts.has(artefactId)
  }

  /** A live session. One whose time is over is ended first: nobody sees one that the sweep has merely not reached yet. */
  findLive(key: SessionKey, nowMs: number): LiveSession | undefined {
    const session = this.#live.get(key)
    if (session === undefined || heldUntilMs(session.leases) > nowMs) return session
    if (session.state === 'creating') this.vanish(session, nowMs)
    else if (nowMs < session.expiresAtMs) return session
    else this.expire(session, nowMs)
    return undefined
  }

  findTombstone(key: SessionKey, nowMs: number): Tombstone | undefined {
    const tombstone = this.#tombstones.get(key)
    if (tombstone === undefined || tombstone.forgetAtMs > nowMs) return tombstone
    this.#tombstones.delete(key)
    return undefined
  }

  /** Marks a session as the most recently used. */
  touch(session: LiveSession): void {
    this.#live.touch(session.key)
  }

  /** Adds a session, in place of its tombstone if there is one. `false`: there is no room, and every session is held by a turn. */
  add(session: Omit<LiveSession, 'sequence'>, nowMs: number): LiveSession | undefined {
    if (!this.#makeRoom(nowMs)) return undefined
    this.#sequence += 1
    const added: LiveSession = { ...session, sequence: this.#sequence }
    this.#tombstones.delete(added.key)
    this.#live.set(added.key, added)
    const index = this.#tenants.get(added.tenant) ?? new SequenceIndex<SessionKey>()
    this.#tenants.set(added.tenant, index)
    index.add(added.sequence, added.key)
    this.reschedule(added)
    return added
  }

  /** To be called when a session's state, deadline or leases have changed. */
  reschedule(session: LiveSession): void {
    this.#deadlines.set(session.key, session.state === 'creating' ? heldUntilMs(session.leases) : session.expiresAtMs)
  }

  setKv(session: LiveSession, kv: StoredKv | undefined): void {
    if (session.kv !== undefined) this.#artefacts.delete(session.kv.artefactId)
    if (kv !== undefined) this.#artefacts.add(kv.artefactId)
    session.kv = kv
  }

  /** Leaves no tombstone, and lets the create be repeated. */
  vanish(session: LiveSession, nowMs: number): void {
    this.#end(session, nowMs)
    if (session.retryDigest !== undefined) this.#retryKeys.release(session.retryDigest, session.key)
  }

  expire(session: LiveSession, nowMs: number): void {
    this.#end(session, nowMs)
    const { tenant, sequence, sealedId, model, ttlSeconds } = session
    this.#entomb(session.key, { kind: 'expired', tenant, sequence, sealedId, model, ttlSeconds, leases: [] }, nowMs)
  }

  delete(session: LiveSession, nowMs: number): void {
    this.#end(session, nowMs)
    this.#entomb(session.key, { kind: 'deleted', tenant: session.tenant, sequence: session.sequence }, nowMs)
  }

  /** Ends up to `limit` sessions whose time is over; resolves to how many. */
  expireDue(limit: number, nowMs: number): number {
    let ended = 0
    while (ended < limit) {
      const key = this.#deadlines.takeDue(nowMs)
      if (key === undefined) break
      const session = this.findLive(key, nowMs)
      if (session === undefined) ended += 1
      else this.#deadlines.set(key, Math.max(heldUntilMs(session.leases), this.#overAtMs(session)))
    }
    return ended
  }

  findRetry(digest: string, nowMs: number): { readonly session: SessionKey; readonly bodyDigest: string } | undefined {
    return this.#retryKeys.find(digest, nowMs)
  }

  rememberRetry(retryKey: RetryKey, session: SessionKey, nowMs: number): void {
    this.#retryKeys.remember(retryKey, session, nowMs)
  }

  /** A tenant's live sessions, newest first, after `after`; from the start if nothing is known of that one any more. */
  list(tenant: TenantKey, after: SessionKey | undefined, limit: number, nowMs: number): readonly LiveSession[] {
    const index = this.#tenants.get(tenant)
    const sessions: LiveSession[] = []
    const over: LiveSession[] = []
    for (const key of index?.newestBelow(this.#placeOf(after, tenant, nowMs)) ?? []) {
      const session = this.#live.get(key)
      if (session === undefined) continue
      if (this.#isOver(session, nowMs)) over.push(session)
      else sessions.push(session)
      if (sessions.length === limit) break
    }
    for (const { key } of over) this.findLive(key, nowMs)
    return sessions
  }

  #placeOf(key: SessionKey | undefined, tenant: TenantKey, nowMs: number): number {
    const known = key === undefined ? undefined : (this.#live.get(key) ?? this.findTombstone(key, nowMs))
    return known?.tenant === tenant ? known.sequence : Number.POSITIVE_INFINITY
  }

  #overAtMs(session: LiveSession): number {
    return session.state === 'creating' ? 0 : session.expiresAtMs
  }

  #isOver(session: LiveSession, nowMs: number): boolean {
    return heldUntilMs(session.leases) <= nowMs && this.#overAtMs(session) <= nowMs
  }

  #end(session: LiveSession, nowMs: number): void {
    const { kv } = session
    this.#live.delete(session.key)
    this.#deadlines.delete(session.key)
    const index = this.#tenants.get(session.tenant)
    index?.remove(session.sequence)
    if (index?.size === 0) this.#tenants.delete(session.tenant)
    this.setKv(session, undefined)
    this.#options.removals.queueSession(session.key, kv, nowMs)
  }

  #entomb(
    key: SessionKey,
    tombstone: Omit<ExpiredTombstone, 'forgetAtMs'> | Omit<Extract<Tombstone, { kind: 'deleted' }>, 'forgetAtMs'>,
    nowMs: number,
  ): void {
    this.#tombstones.set(key, { ...tombstone, forgetAtMs: nowMs + this.#options.tombstoneSeconds * 1000 })
    for (let oldest = this.#tombstones.oldest(); oldest !== undefined; oldest = this.#tombstones.oldest()) {
      if (oldest.value.forgetAtMs > nowMs && this.#tombstones.size <= this.#options.maxSessions) break
      this.#tombstones.delete(oldest.key)
    }
  }

  /** Sessions whose time is over go first, then the least recently used one that no turn holds. */
  #makeRoom(nowMs: number): boolean {
    if (this.#live.size < this.#options.maxSessions) return true
    if (this.expireDue(1, nowMs) > 0) return true
    for (let tries = this.#live.size; tries > 0; tries--) {
      const oldest = this.#live.oldest()?.value
      if (oldest === undefined) return true
      if (heldUntilMs(oldest.leases) > nowMs) {
        this.touch(oldest)
        continue
      }
      this.expire(oldest, nowMs)
      this.#options.onEvicted()
      return true
    }
    return false
  }
}
