import type { Evicted, KvLimit } from '../eviction.ts'
import { kvEvictedNote } from '../eviction.ts'
import type { SessionKey, StoredKv, TenantKey } from '../session-record.ts'
import type { RetryKey } from '../session-store.ts'
import { DeadlineHeap } from './deadline-heap.ts'
import { EvictionOrder } from './eviction-order.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type LiveSession, type NewLiveSession, type Tombstone, toLive } from './memory-session.ts'
import { RetryKeys } from './retry-keys.ts'
import { SequenceIndex } from './sequence-index.ts'
import { sessionBytes, storedKvBytes } from './session-bytes.ts'
import { SessionLeases } from './session-leases.ts'
import { Tombstones } from './tombstones.ts'
import { noLeases, type TurnLease } from './turn-leases.ts'

export interface SessionTableOptions {
  readonly removals: MemoryRemovals
  /** Live sessions, and the same number of tombstones and of retry keys. */
  readonly maxSessions: number
  readonly tombstoneSeconds: number
  /** Undefined: as much KV may be stored as the sessions have. */
  readonly kvLimit: KvLimit | undefined
  /** Called for everything that had to make room. */
  readonly onEvicted: (what: Evicted, count: number) => void
}

/** What one step ends at most, so that no caller waits long after the memory that sessions may take has shrunk. */
const evictionsPerStep = 64

/** Every session and tombstone, with the indexes over them. Knows how sessions end; what a turn does to one is not its matter. */
export class SessionTable {
  /** Of live sessions. After a change `touch` is to be called, and `reschedule` for one that is being created. */
  readonly leases = new SessionLeases()
  readonly #live = new Map<SessionKey, LiveSession>()
  readonly #tombstones: Tombstones
  readonly #deadlines = new DeadlineHeap<SessionKey>()
  /** By the memory that sessions take. */
  readonly #order = new EvictionOrder<SessionKey>()
  /** By the size of their stored KV. */
  readonly #kvOrder = new EvictionOrder<SessionKey>()
  readonly #tenants = new Map<TenantKey, SequenceIndex<SessionKey>>()
  readonly #artefacts = new Map<string, SessionKey>()
  readonly #retryKeys: RetryKeys
  readonly #options: SessionTableOptions
  #ceilingBytes = Number.POSITIVE_INFINITY
  #sequence = 0

  constructor(options: SessionTableOptions) {
    this.#options = options
    this.#tombstones = new Tombstones({ maxCount: options.maxSessions })
    this.#retryKeys = new RetryKeys({ maxKeys: options.maxSessions })
  }

  get size(): number {
    return this.#live.size
  }

  /** About what sessions and tombstones take of this process's memory. */
  get bytes(): number {
    return this.#order.bytes + this.#tombstones.bytes
  }

  /** The stored KV of all sessions. */
  get kvBytes(): number {
    return this.#kvOrder.bytes
  }

  ownerOf(artefactId: string): SessionKey | undefined {
    return this.#artefacts.get(artefactId)
  }

  /** A live session. One whose time is over is ended first: nobody sees one that the sweep has merely not reached yet. */
  findLive(key: SessionKey, nowMs: number): LiveSession | undefined {
    const session = this.#live.get(key)
    if (session === undefined || !this.#isOver(session, nowMs)) return session
    if (session.state === 'creating') this.vanish(session, nowMs)
    else this.#expire(session, 'time', nowMs)
    return undefined
  }

  findTombstone(key: SessionKey, nowMs: number): Tombstone | undefined {
    return this.#tombstones.find(key, nowMs)
  }

  /** To be called when a turn has taken or released its lease: marks the session as the most recently used. */
  touch(session: LiveSession, nowMs: number): void {
    const { key, bytes, kv } = session
    const usedMs = Math.max(nowMs, this.leases.heldUntilMs(key))
    session.place = this.#order.put(session.place, key, { bytes, usedMs })
    if (kv !== undefined) session.kvPlace = this.#kvOrder.put(session.kvPlace, key, { bytes: kv.bytes, usedMs })
  }

  /** Adds a session that turns hold, in place of its tombstone if there is one. Undefined: there is no room, and every session is held by a turn. */
  add(session: NewLiveSession, leases: readonly TurnLease[], nowMs: number): LiveSession | undefined {
    const added = toLive(session, this.#sequence + 1)
    if (!this.#makeRoom(added.bytes, nowMs)) return undefined
    this.#sequence += 1
    this.#tombstones.delete(added.key)
    this.#live.set(added.key, added)
    this.leases.put(added.key, leases)
    const index = this.#tenants.get(added.tenant) ?? new SequenceIndex<SessionKey>()
    this.#tenants.set(added.tenant, index)
    index.add(added.sequence, added.key)
    this.reschedule(added)
    this.touch(added, nowMs)
    return added
  }

  /** To be called when a session's state, deadline or leases have changed. */
  reschedule(session: LiveSession): void {
    const { key, state, expiresAtMs } = session
    this.#deadlines.set(key, state === 'creating' ? this.leases.heldUntilMs(key) : expiresAtMs)
  }

  /** Storing KV counts as a use of the session. */
  setKv(session: LiveSession, kv: StoredKv | undefined, nowMs: number): void {
    if (session.kv !== undefined) this.#artefacts.delete(session.kv.artefactId)
    if (kv === undefined) {
      this.#kvOrder.delete(session.kvPlace)
      session.kvPlace = undefined
    } else this.#artefacts.set(kv.artefactId, session.key)
    session.kv = kv
    session.bytes = sessionBytes(session)
    if (kv !== undefined) this.touch(session, nowMs)
  }

  /** Takes its stored KV from a session that lives on, and queues the removal. */
  dropKv(session: LiveSession, reason: string, nowMs: number): void {
    const { kv } = session
    if (kv === undefined) return
    this.setKv(session, undefined, nowMs)
    session.kvNote = reason
    this.#options.removals.queueArtefact(session.key, kv, nowMs)
  }

  /** Whether there is room for the KV in place of what the session has stored, after others have made room. */
  hasRoomFor(session: LiveSession, kv: StoredKv, nowMs: number): boolean {
    const growth = Math.max(0, storedKvBytes(kv) - storedKvBytes(session.kv))
    return this.#hasMemory(growth, nowMs) && this.#live.has(session.key) && this.#hasKvRoom(session, kv.bytes, nowMs)
  }

  /** Leaves no tombstone, and lets the create be repeated. */
  vanish(session: LiveSession, nowMs: number): void {
    this.#end(session, nowMs)
    if (session.retryDigest !== undefined) this.#retryKeys.release(session.retryDigest, session.key)
  }

  /** Leaves a tombstone, in place of that of an expired session if it is one. */
  delete(key: SessionKey, ended: LiveSession | Tombstone, nowMs: number): void {
    const session = this.#live.get(key)
    if (session !== undefined) this.#end(session, nowMs)
    else this.#options.removals.queueSession(key, undefined, nowMs)
    const { tenant, sequence } = ended
    this.#tombstones.add(key, { kind: 'deleted', tenant, sequence, forgetAtMs: this.#forgetAtMs(nowMs) }, nowMs)
  }

  /** Ends up to `limit` sessions whose time is over; returns how many. */
  expireDue(limit: number, nowMs: number): number {
    let ended = 0
    while (ended < limit) {
      const key = this.#deadlines.takeDue(nowMs)
      if (key === undefined) break
      const session = this.findLive(key, nowMs)
      if (session === undefined) ended += 1
      else this.#deadlines.set(key, Math.max(this.leases.heldUntilMs(key), this.#overAtMs(session)))
    }
    return ended
  }

  /**
   * From now on sessions and tombstones may take so much memory together. Where they take more, what is added makes room first, and
   * `evict` brings them down.
   */
  setCeiling(bytes: number): void {
    this.#ceilingBytes = bytes
  }

  /** Brings memory and stored KV down to what they may take, in up to `limit` steps; resolves to how many it took. */
  evict(limit: number, nowMs: number): number {
    const freed = this.#relieve(limit, nowMs)
    const { kvLimit } = this.#options
    if (kvLimit === undefined || freed >= limit) return freed
    const targetBytes = kvLimit.maxBytes * kvLimit.threshold
    if (this.kvBytes <= targetBytes) return freed
    this.expireDue(limit, nowMs)
    return freed + this.#dropKvDownTo(targetBytes, limit - freed, nowMs)
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
    return this.#overAtMs(session) <= nowMs && this.leases.heldUntilMs(session.key) <= nowMs
  }

  #forgetAtMs(nowMs: number): number {
    return nowMs + this.#options.tombstoneSeconds * 1000
  }

  #expire(session: LiveSession, cause: 'time' | 'eviction', nowMs: number): void {
    this.#end(session, nowMs)
    const { key, tenant, sequence, sealedId, model, ttlSeconds } = session
    const forgetAtMs = this.#forgetAtMs(nowMs)
    const kept = {
      kind: 'expired',
      tenant,
      sequence,
      sealedId,
      model,
      ttlSeconds,
      cause,
      leases: noLeases,
      forgetAtMs,
    } as const
    this.#tombstones.add(key, kept, nowMs)
  }

  #end(session: LiveSession, nowMs: number): void {
    const { kv } = session
    this.#live.delete(session.key)
    this.leases.drop(session.key)
    this.#deadlines.delete(session.key)
    this.#order.delete(session.place)
    const index = this.#tenants.get(session.tenant)
    index?.remove(session.sequence)
    if (index?.size === 0) this.#tenants.delete(session.tenant)
    this.setKv(session, undefined, nowMs)
    this.#options.removals.queueSession(session.key, kv, nowMs)
  }

  /** Sessions whose time is over go first. */
  #makeRoom(bytes: number, nowMs: number): boolean {
    while (this.#live.size >= this.#options.maxSessions) {
      if (this.expireDue(1, nowMs) === 0 && !this.#evictOne('session-count', nowMs)) return false
    }
    return this.#hasMemory(bytes, nowMs)
  }

  #hasMemory(bytes: number, nowMs: number): boolean {
    const fits = (): boolean => this.bytes + bytes <= this.#ceilingBytes
    if (fits()) return true
    const freed = this.#relieve(evictionsPerStep, nowMs, bytes)
    // While there is more to free than one step does, the sessions still become fewer.
    return freed === evictionsPerStep || fits()
  }

  /** Memory is short: what is over goes first, then what is merely remembered, then sessions. */
  #relieve(limit: number, nowMs: number, addedBytes = 0): number {
    let freed = 0
    while (freed < limit && this.bytes + addedBytes > this.#ceilingBytes) {
      const hasFreed =
        this.expireDue(1, nowMs) > 0 || this.#tombstones.forgetOldest(nowMs) || this.#evictOne('session-memory', nowMs)
      if (!hasFreed) break
      freed += 1
    }
    return freed
  }

  #hasKvRoom(session: LiveSession, bytes: number, nowMs: number): boolean {
    const { kvLimit } = this.#options
    if (kvLimit === undefined) return true
    const freeBytes = kvLimit.maxBytes - bytes
    if (freeBytes < 0) return false
    const replaced = session.kv
    if (this.kvBytes - (replaced?.bytes ?? 0) <= freeBytes) return true
    this.expireDue(evictionsPerStep, nowMs)
    // It is in use, whatever its leases say.
    if (replaced !== undefined) this.#kvOrder.delete(session.kvPlace)
    this.#dropKvDownTo(freeBytes, Number.POSITIVE_INFINITY, nowMs)
    const hasRoom = this.kvBytes <= freeBytes
    if (replaced !== undefined)
      session.kvPlace = this.#kvOrder.put(session.kvPlace, session.key, { bytes: replaced.bytes, usedMs: nowMs })
    return hasRoom
  }

  #evictOne(reason: 'session-count' | 'session-memory', nowMs: number): boolean {
    const key = this.#order.victim(nowMs)
    const session = key === undefined ? undefined : this.#live.get(key)
    if (session === undefined) return false
    this.#expire(session, 'eviction', nowMs)
    this.#options.onEvicted(reason, 1)
    return true
  }

  #dropKvDownTo(bytes: number, limit: number, nowMs: number): number {
    let dropped = 0
    while (dropped < limit && this.kvBytes > bytes) {
      const key = this.#kvOrder.victim(nowMs)
      const session = key === undefined ? undefined : this.#live.get(key)
      if (session === undefined) break
      this.dropKv(session, kvEvictedNote, nowMs)
      dropped += 1
    }
    if (dropped > 0) this.#options.onEvicted('kv-size', dropped)
    return dropped
  }
}
