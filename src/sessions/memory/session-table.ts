import type { Evicted, KvLimit } from '../eviction.ts'
import { kvEvictedNote } from '../eviction.ts'
import type { SessionKey, StoredKv, TenantKey } from '../session-record.ts'
import { EvictionOrder } from './eviction-order.ts'
import { keyStartLength } from './key-index.ts'
import { LiveSession, type NewLiveSession } from './live-session.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { RetryKeys } from './retry-keys.ts'
import { sessionBytes, storedKvBytes } from './session-bytes.ts'
import { SessionLeases } from './session-leases.ts'
import { SessionRows, sessionColumns } from './session-rows.ts'
import { SlotHeap } from './slot-heap.ts'
import { noSlot } from './slot-rows.ts'
import { TenantLists } from './tenant-lists.ts'
import type { Tombstone } from './tombstone.ts'
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
  readonly retryKeys: RetryKeys
  readonly #rows = new SessionRows()
  readonly #tombstones: Tombstones
  /** When a session is to be looked at: at its deadline, or earlier where that was moved back. */
  readonly #deadlines = new SlotHeap({ rows: this.#rows.rows, column: sessionColumns.deadlinePlace })
  /** By the memory that sessions take. */
  readonly #order = new EvictionOrder(this.#rows.rows, sessionColumns.order)
  /** By the size of their stored KV. */
  readonly #kvOrder = new EvictionOrder(this.#rows.rows, sessionColumns.kvOrder)
  readonly #tenants = new TenantLists()
  /** Artefacts that are not named after their sessions. */
  readonly #artefacts = new Map<string, SessionKey>()
  readonly #options: SessionTableOptions
  #ceilingBytes = Number.POSITIVE_INFINITY
  #sequence = 0

  constructor(options: SessionTableOptions) {
    this.#options = options
    this.#tombstones = new Tombstones({ maxCount: options.maxSessions })
    this.retryKeys = new RetryKeys({ maxKeys: options.maxSessions })
  }

  get size(): number {
    return this.#rows.size
  }

  /** About what sessions and tombstones take of this process's memory. */
  get bytes(): number {
    return this.#order.bytes + this.#tombstones.bytes
  }

  /** What is kept of this process's memory, outside of its heap, for sessions to come. */
  get spareBytes(): number {
    return this.#rows.spareBytes
  }

  /** The stored KV of all sessions. */
  get kvBytes(): number {
    return this.#kvOrder.bytes
  }

  ownerOf(artefactId: string): SessionKey | undefined {
    const session = this.#present(artefactId.slice(0, keyStartLength))
    return session?.kv?.artefactId === artefactId ? session.key : this.#artefacts.get(artefactId)
  }

  /** A live session. One whose time is over is ended first: nobody sees one that the sweep has merely not reached yet. */
  findLive(key: SessionKey, nowMs: number): LiveSession | undefined {
    const session = this.#present(key)
    if (session === undefined || !this.#isOver(session, nowMs)) return session
    this.#endOver(session, nowMs)
    return undefined
  }

  findTombstone(key: SessionKey, nowMs: number): Tombstone | undefined {
    return this.#tombstones.find(key, nowMs)
  }

  /** To be called when a turn has taken or released its lease: marks the session as the most recently used. */
  touch(session: LiveSession, nowMs: number): void {
    const { slot, bytes, kv } = session
    const usedMs = Math.max(nowMs, this.leases.heldUntilMs(slot))
    this.#order.put(slot, { bytes, usedMs })
    if (kv !== undefined) this.#kvOrder.put(slot, { bytes: kv.bytes, usedMs })
  }

  /** Adds a session that turns hold, in place of its tombstone if there is one. Undefined: there is no room, and every session is held by a turn. */
  add(session: NewLiveSession, leases: readonly TurnLease[], nowMs: number): LiveSession | undefined {
    if (!this.#makeRoom(sessionBytes(session), nowMs)) return undefined
    this.#sequence += 1
    this.#tombstones.delete(session.key)
    const added = LiveSession.begin(this.#rows, session, this.#sequence)
    this.leases.put(added.slot, leases)
    this.#tenants.add(added.tenantNumber, this.#sequence, added.slot)
    this.reschedule(added)
    this.touch(added, nowMs)
    return added
  }

  /** To be called when a session's state, deadline or leases have changed. */
  reschedule(session: LiveSession): void {
    const { slot } = session
    const dueMs = this.#dueMs(session)
    // One that is due later is moved when its old time comes.
    if (!this.#deadlines.has(slot) || dueMs < this.#deadlines.timeOf(slot)) this.#deadlines.put(slot, dueMs)
  }

  /** Storing KV counts as a use of the session. */
  setKv(session: LiveSession, kv: StoredKv | undefined, nowMs: number): void {
    if (session.kv !== undefined) this.#artefacts.delete(session.kv.artefactId)
    session.kv = kv
    if (kv === undefined) {
      this.#kvOrder.delete(session.slot)
      return
    }
    const { key } = session
    if (!kv.artefactId.startsWith(key.slice(0, keyStartLength))) this.#artefacts.set(kv.artefactId, key)
    this.touch(session, nowMs)
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
    const { key, slot } = session
    const growth = Math.max(0, storedKvBytes(kv) - storedKvBytes(session.kv))
    // The session itself may be what made room.
    const hasMemory = this.#hasMemory(growth, nowMs) && this.#rows.find(key) === slot
    return hasMemory && this.#hasKvRoom(session, kv.bytes, nowMs)
  }

  /** Leaves no tombstone, and lets the create be repeated. */
  vanish(session: LiveSession, nowMs: number): void {
    const { key, retryDigest } = session
    this.#end(session, nowMs)
    if (retryDigest !== undefined) this.retryKeys.release(retryDigest, key)
  }

  /** Leaves a tombstone, in place of that of an expired session if it is one. */
  delete(key: SessionKey, ended: LiveSession | Tombstone, nowMs: number): void {
    const { tenant, sequence } = ended
    const session = this.#present(key)
    if (session !== undefined) this.#end(session, nowMs)
    else this.#options.removals.queueSession(key, undefined, nowMs)
    this.#tombstones.add(key, { kind: 'deleted', tenant, sequence, forgetAtMs: this.#forgetAtMs(nowMs) }, nowMs)
  }

  /** Ends up to `limit` sessions whose time is over; returns how many. */
  expireDue(limit: number, nowMs: number): number {
    let ended = 0
    while (ended < limit) {
      const slot = this.#deadlines.first
      if (slot === noSlot) break
      const lookedForMs = this.#deadlines.timeOf(slot)
      if (lookedForMs > nowMs) break
      const session = this.#at(slot)
      const dueMs = this.#dueMs(session)
      if (dueMs > lookedForMs) this.#deadlines.put(slot, dueMs)
      else if (!this.#isOver(session, nowMs)) this.#deadlines.put(slot, this.leases.heldUntilMs(slot))
      else {
        this.#endOver(session, nowMs)
        ended += 1
      }
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

  /** A tenant's live sessions, newest first, after `after`; from the start if nothing is known of that one any more. */
  list(tenant: TenantKey, after: SessionKey | undefined, limit: number, nowMs: number): readonly LiveSession[] {
    const sessions: LiveSession[] = []
    const over: LiveSession[] = []
    const below = this.#placeOf(after, tenant, nowMs)
    for (const slot of this.#tenants.newestBelow(this.#rows.texts.find(tenant), below)) {
      const session = this.#at(slot)
      if (this.#isOver(session, nowMs)) over.push(session)
      else sessions.push(session)
      if (sessions.length === limit) break
    }
    for (const session of over) this.#endOver(session, nowMs)
    return sessions
  }

  #placeOf(key: SessionKey | undefined, tenant: TenantKey, nowMs: number): number {
    const known = key === undefined ? undefined : (this.#present(key) ?? this.findTombstone(key, nowMs))
    return known?.tenant === tenant ? known.sequence : Number.POSITIVE_INFINITY
  }

  #at(slot: number): LiveSession {
    return new LiveSession(this.#rows, slot)
  }

  /** A session by its key or the start of it, whether its time is over or not. */
  #present(key: string): LiveSession | undefined {
    const slot = this.#rows.find(key)
    return slot === noSlot ? undefined : this.#at(slot)
  }

  /** A session that is being created has only its turn's lease. */
  #dueMs(session: LiveSession): number {
    return session.state === 'creating' ? this.leases.heldUntilMs(session.slot) : session.expiresAtMs
  }

  #isOver(session: LiveSession, nowMs: number): boolean {
    return this.#dueMs(session) <= nowMs && this.leases.heldUntilMs(session.slot) <= nowMs
  }

  #endOver(session: LiveSession, nowMs: number): void {
    if (session.state === 'creating') this.vanish(session, nowMs)
    else this.#expire(session, 'time', nowMs)
  }

  #forgetAtMs(nowMs: number): number {
    return nowMs + this.#options.tombstoneSeconds * 1000
  }

  #expire(session: LiveSession, cause: 'time' | 'eviction', nowMs: number): void {
    const { key, tenant, sequence, sealedId, model, ttlSeconds } = session
    this.#end(session, nowMs)
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
    const { slot, key, kv } = session
    this.leases.drop(slot)
    this.#deadlines.delete(slot)
    this.#order.delete(slot)
    this.#tenants.remove(session.tenantNumber, session.sequence)
    this.setKv(session, undefined, nowMs)
    this.#rows.free(slot)
    this.#options.removals.queueSession(key, kv, nowMs)
  }

  /** Sessions whose time is over go first. */
  #makeRoom(bytes: number, nowMs: number): boolean {
    while (this.size >= this.#options.maxSessions) {
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
    if (replaced !== undefined) this.#kvOrder.delete(session.slot)
    this.#dropKvDownTo(freeBytes, Number.POSITIVE_INFINITY, nowMs)
    const hasRoom = this.kvBytes <= freeBytes
    if (replaced !== undefined) this.#kvOrder.put(session.slot, { bytes: replaced.bytes, usedMs: nowMs })
    return hasRoom
  }

  #evictOne(reason: 'session-count' | 'session-memory', nowMs: number): boolean {
    const slot = this.#order.victim(nowMs)
    if (slot === noSlot) return false
    this.#expire(this.#at(slot), 'eviction', nowMs)
    this.#options.onEvicted(reason, 1)
    return true
  }

  #dropKvDownTo(bytes: number, limit: number, nowMs: number): number {
    let dropped = 0
    while (dropped < limit && this.kvBytes > bytes) {
      const slot = this.#kvOrder.victim(nowMs)
      if (slot === noSlot) break
      this.dropKv(this.#at(slot), kvEvictedNote, nowMs)
      dropped += 1
    }
    if (dropped > 0) this.#options.onEvicted('kv-size', dropped)
    return dropped
  }
}
