import { type Evicted, type KvLimit, kvEvictedStatus, type TenantLimits } from '../limits.ts'
import type { TenantName } from '../session-directory.ts'
import { branchKeyOf, type SessionKey, type StoredKv, type TenantKey } from '../session-record.ts'
import { StoreUnavailableError } from '../session-store.ts'
import { DeadlineQueue } from './deadline-queue.ts'
import { IdleOrder } from './idle-order.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import {
  type MemorySession,
  type NewMemorySession,
  sessionBytes,
  storedKvBytes,
  type Tombstone,
} from './memory-session.ts'
import { NamedSessions } from './named-sessions.ts'
import { RetryKeys } from './retry-keys.ts'
import { ShardedMap } from './sharded-map.ts'
import { TenantLists } from './tenant-lists.ts'
import { TenantUsage } from './tenant-usage.ts'
import { Tombstones } from './tombstones.ts'
import { dueMsOf, hasExpired, heldUntilMs } from './turn-leases.ts'

export interface SessionTableOptions {
  readonly removals: MemoryRemovals
  /** Live sessions at most, and tombstones and idempotency keys at most, each. */
  readonly maxSessions: number
  readonly tombstoneSeconds: number
  readonly kvLimit: KvLimit | undefined
  readonly tenantLimits: () => TenantLimits
  readonly onEvicted: (what: Evicted, count: number) => void
}

interface NewestQuery {
  readonly tenant: TenantKey | TenantName | undefined
  readonly below: number
  readonly limit: number
}

/** Shared by all sessions that have none. */
export const noBranches: MemorySession['branches'] = []

/** One step evicts so many sessions at most, so that no caller waits long after memory has shrunk. */
const evictionsPerStep = 64

/** Every session and tombstone, with the indexes over them. It ends sessions; MemorySessions applies turns to them. */
export class SessionTable {
  readonly #sessions = new ShardedMap<SessionKey, MemorySession>()
  readonly #tombstones: Tombstones
  readonly retryKeys: RetryKeys
  /** What tenants use of what they may have. */
  readonly usage: TenantUsage
  readonly #deadlines = new DeadlineQueue<MemorySession>()
  readonly #order = new IdleOrder<MemorySession>()
  readonly #kvOrder = new IdleOrder<MemorySession>()
  readonly #tenants = new TenantLists()
  readonly #named = new NamedSessions()
  readonly #artefactOwners = new ShardedMap<string, SessionKey>()
  readonly #options: SessionTableOptions
  #ceilingBytes = Number.POSITIVE_INFINITY
  #sequence = 0

  constructor(options: SessionTableOptions) {
    this.#options = options
    this.#tombstones = new Tombstones(options)
    this.retryKeys = new RetryKeys(options.maxSessions)
    this.usage = new TenantUsage(options.tenantLimits, (...of) => this.#countOf(...of))
  }

  get size(): number {
    return this.#sessions.size
  }

  get bytes(): number {
    return this.#order.bytes + this.#tombstones.bytes
  }

  get kvBytes(): number {
    return this.#kvOrder.bytes
  }

  /** Limits the memory of sessions and tombstones together, from the next step on. */
  setCeiling(bytes: number): void {
    this.#ceilingBytes = bytes
  }

  ownerOf(artefactId: string): SessionKey | undefined {
    return this.#artefactOwners.get(artefactId)
  }

  /** A live session. One that has expired is ended first: no caller sees one that the sweep has not reached yet. */
  findLive(key: SessionKey, nowMs: number): MemorySession | undefined {
    const session = this.#sessions.get(key)
    if (session === undefined || !hasExpired(session, nowMs)) return session
    this.#endExpired(session, nowMs)
    return undefined
  }

  /** The live branches beside the first. A session that ends takes them along: nothing else names them. */
  branchesOf(key: SessionKey, of: Pick<Tombstone, 'tenant' | 'branches'>, nowMs: number): readonly MemorySession[] {
    const others = [...of.branches.keys()].filter((number) => number > 0 && of.branches[number] !== undefined)
    const found = others.map((number) => this.findLive(branchKeyOf(key, number), nowMs))
    return found.filter((branch): branch is MemorySession => branch?.tenant === of.tenant)
  }

  findTombstone(key: SessionKey, nowMs: number): Tombstone | undefined {
    return this.#tombstones.find(key, nowMs)
  }

  /** Adds a held session replacing its tombstone. @throws StoreUnavailableError when turns hold all of a full store. */
  add(wanted: NewMemorySession, nowMs: number): MemorySession {
    const hasRoom = this.#makeRoom(sessionBytes({ ...wanted, kv: undefined }), nowMs)
    if (!hasRoom) throw new StoreUnavailableError('The session store is full, and every session in it is in use')
    this.#tombstones.delete(wanted.key)
    this.#sequence += 1
    // Written out: with a spread a session takes four times as much memory.
    const session: MemorySession = {
      key: wanted.key,
      tenant: wanted.tenant,
      sealedId: wanted.sealedId,
      model: wanted.model,
      createdAtMs: nowMs,
      sequence: this.#sequence,
      isLive: true,
      state: wanted.state,
      expiresAtMs: wanted.expiresAtMs,
      ttlSeconds: wanted.ttlSeconds,
      turns: 0,
      prompt: 0,
      output: 0,
      cached: 0,
      pod: wanted.pod,
      kv: undefined,
      kvStatus: undefined,
      retryDigest: wanted.retryDigest,
      leases: wanted.leases,
      by: wanted.by,
      branches: wanted.branches,
      usedMs: nowMs,
      dueMs: 0,
      entry: undefined,
      place: undefined,
      kvPlace: undefined,
    }
    this.#sessions.set(session.key, session)
    session.place = this.#order.add(session, sessionBytes(session))
    if (wanted.by !== 'prompt') this.#tenants.add(session)
    if (wanted.by === 'name') this.#named.touch(session)
    this.reschedule(session)
    return session
  }

  /** Ends named sessions of the tenant until it may have another one. False: turns hold all of them. */
  makeRoomForNamed(tenant: TenantKey, maxNamedSessions: number, nowMs: number): boolean {
    for (const oldest of this.#named.leastRecentlyUsed(tenant)) {
      if (this.#named.count(tenant) < maxNamedSessions) return true
      if (hasExpired(oldest, nowMs)) this.#endExpired(oldest, nowMs)
      else if (heldUntilMs(oldest.leases) <= nowMs) this.#endWithTombstone(oldest, 'eviction', nowMs)
    }
    return this.#named.count(tenant) < maxNamedSessions
  }

  countNamed(tenant: TenantName): number {
    return this.#named.count(tenant)
  }

  /** To be called when a session's state, deadline or leases have changed. */
  reschedule(session: MemorySession): void {
    this.#deadlines.set(session, dueMsOf(session))
  }

  /** Marks a session as the most recently used. */
  touch(session: MemorySession, nowMs: number): void {
    session.usedMs = nowMs
    if (session.by === 'name') this.#named.touch(session)
    if (session.place !== undefined) this.#order.touch(session.place)
    if (session.kvPlace !== undefined) this.#kvOrder.touch(session.kvPlace)
  }

  setKv(session: MemorySession, kv: StoredKv, nowMs: number): void {
    this.#replaceKv(session, kv)
    this.usage.kvStored(session.tenant)
    this.touch(session, nowMs)
  }

  /** Drops the stored KV of a session that lives on, and queues its removal. */
  dropKv(session: MemorySession, reason: string, nowMs: number): void {
    const { kv } = session
    if (kv === undefined) return
    this.#replaceKv(session, undefined)
    session.kvStatus = reason
    this.#options.removals.queueArtefact(session.key, kv, nowMs)
  }

  /** Whether the KV fits in place of what the session has stored; evicts others where it has to. */
  hasRoomFor(session: MemorySession, kv: StoredKv, nowMs: number): boolean {
    const growth = Math.max(0, storedKvBytes(kv) - (session.kv === undefined ? 0 : storedKvBytes(session.kv)))
    // The session itself may have been evicted.
    return this.#hasMemory(growth, nowMs) && session.isLive && this.#hasKvRoom(session, kv.bytes, nowMs)
  }

  /** Ends a session without a tombstone, and forgets its idempotency key, so that the create can be repeated. */
  discard(session: MemorySession, nowMs: number): void {
    this.#end(session, nowMs)
    this.retryKeys.forget(session.retryDigest ?? '', session.key)
  }

  delete(key: SessionKey, ended: MemorySession | Tombstone, nowMs: number): void {
    for (const branch of this.branchesOf(key, ended, nowMs)) this.delete(branch.key, branch, nowMs)
    const session = this.#sessions.get(key)
    if (session !== undefined) this.#end(session, nowMs)
    else this.#options.removals.queueSession(key, undefined, nowMs)
    const { tenant, sequence, leases, by } = ended
    const nothing = { sealedId: '', model: '', ttlSeconds: 0, branches: noBranches }
    this.#tombstones.add(key, { kind: 'deleted', tenant, sequence, by, ...nothing, cause: 'time', leases }, nowMs)
  }

  /** Ends up to `limit` expired sessions; returns how many. */
  expireDue(limit: number, nowMs: number): number {
    let ended = 0
    for (let session = this.#deadlines.firstDue(nowMs); session !== undefined && ended < limit; ) {
      if (hasExpired(session, nowMs)) {
        this.#endExpired(session, nowMs)
        ended += 1
      } else this.#deadlines.set(session, heldUntilMs(session.leases))
      session = this.#deadlines.firstDue(nowMs)
    }
    return ended
  }

  /** Brings memory and stored KV down to their limits, in up to `limit` steps; returns how many steps it took. */
  evict(limit: number, nowMs: number): number {
    const freed = this.#relieve(limit, nowMs, 0)
    const { maxBytes = Number.POSITIVE_INFINITY, threshold = 1 } = this.#options.kvLimit ?? {}
    const targetBytes = maxBytes * threshold
    if (freed >= limit || this.kvBytes <= targetBytes) return freed
    this.expireDue(limit, nowMs)
    return freed + this.#dropKvDownTo(targetBytes, limit - freed, nowMs)
  }

  /** Up to `limit` live sessions of a tenant, by its key or its name, or of all, below a sequence, newest first. */
  newest({ tenant, below, limit }: NewestQuery, nowMs: number): readonly MemorySession[] {
    const found: MemorySession[] = []
    const expired: MemorySession[] = []
    for (const session of this.#tenants.newestFirst(tenant, below)) {
      if (hasExpired(session, nowMs)) expired.push(session)
      else if (found.push(session) === limit) break
    }
    for (const session of expired) this.#endExpired(session, nowMs)
    return found
  }

  /** Live sessions of a tenant. At `limit` some that have expired are ended first. */
  #countOf(tenant: TenantKey, limit: number, nowMs: number): number {
    if (this.#tenants.count(tenant) >= limit) this.expireDue(evictionsPerStep, nowMs)
    return this.#tenants.count(tenant)
  }

  #endExpired(session: MemorySession, nowMs: number): void {
    if (session.state === 'creating') this.discard(session, nowMs)
    else this.#endWithTombstone(session, 'time', nowMs)
  }

  #endWithTombstone(session: MemorySession, cause: 'time' | 'eviction', nowMs: number): void {
    this.#end(session, nowMs)
    const { key, tenant, sequence, sealedId, model, ttlSeconds, by } = session
    const rest = { cause, leases: [], branches: noBranches }
    this.#tombstones.add(key, { kind: 'expired', tenant, sequence, sealedId, model, ttlSeconds, by, ...rest }, nowMs)
  }

  #end(session: MemorySession, nowMs: number): void {
    const { key, kv, place } = session
    this.#replaceKv(session, undefined)
    if (place !== undefined) this.#order.delete(place)
    session.place = undefined
    this.#deadlines.delete(session)
    this.#sessions.delete(key)
    session.isLive = false
    if (session.by !== 'prompt') this.#tenants.delete(session)
    this.#named.delete(session)
    this.#options.removals.queueSession(key, kv, nowMs)
    for (const branch of this.branchesOf(key, session, nowMs)) this.#endExpired(branch, nowMs)
  }

  /** The session stays where it is in the order by memory: a loss of KV is no use. */
  #replaceKv(session: MemorySession, kv: StoredKv | undefined): void {
    if (session.kv !== undefined) this.#artefactOwners.delete(session.kv.artefactId)
    if (session.kvPlace !== undefined) this.#kvOrder.delete(session.kvPlace)
    this.usage.addKv(session.tenant, (kv?.bytes ?? 0) - (session.kv?.bytes ?? 0))
    session.kv = kv
    session.kvPlace = kv && this.#kvOrder.add(session, kv.bytes)
    if (session.place !== undefined) this.#order.resize(session.place, sessionBytes(session))
    if (kv !== undefined) this.#artefactOwners.set(kv.artefactId, session.key)
  }

  /** Expired sessions go first. */
  #makeRoom(bytes: number, nowMs: number): boolean {
    while (this.size >= this.#options.maxSessions) {
      if (this.expireDue(1, nowMs) === 0 && !this.#evictOne('session-count', nowMs)) return false
    }
    return this.#hasMemory(bytes, nowMs)
  }

  #hasMemory(bytes: number, nowMs: number): boolean {
    const fits = (): boolean => this.bytes + bytes <= this.#ceilingBytes
    // After a full step memory may still be short, yet it is granted: the next steps free more than is added.
    return fits() || this.#relieve(evictionsPerStep, nowMs, bytes) === evictionsPerStep || fits()
  }

  /** Frees memory while it is short: expired sessions first, then tombstones, then live sessions. */
  #relieve(limit: number, nowMs: number, addedBytes: number): number {
    let freed = 0
    while (freed < limit && this.bytes + addedBytes > this.#ceilingBytes) {
      const hasFreed =
        this.expireDue(1, nowMs) > 0 || this.#tombstones.forgetOldest(nowMs) || this.#evictOne('session-memory', nowMs)
      if (!hasFreed) break
      freed += 1
    }
    return freed
  }

  #hasKvRoom(session: MemorySession, bytes: number, nowMs: number): boolean {
    const maxBytes = this.#options.kvLimit?.maxBytes ?? Number.POSITIVE_INFINITY
    if (bytes > maxBytes) return false
    const freeBytes = maxBytes - bytes + (session.kv?.bytes ?? 0)
    if (this.kvBytes <= freeBytes) return true
    this.expireDue(evictionsPerStep, nowMs)
    this.#dropKvDownTo(freeBytes, Number.POSITIVE_INFINITY, nowMs, session)
    return this.kvBytes <= freeBytes
  }

  #evictOne(reason: 'session-count' | 'session-memory', nowMs: number): boolean {
    const victim = this.#order.victim(nowMs)
    if (victim === undefined) return false
    this.#endWithTombstone(victim, 'eviction', nowMs)
    this.#options.onEvicted(reason, 1)
    return true
  }

  #dropKvDownTo(bytes: number, limit: number, nowMs: number, spared?: MemorySession): number {
    let dropped = 0
    while (dropped < limit && this.kvBytes > bytes) {
      const victim = this.#kvOrder.victim(nowMs, spared)
      if (victim === undefined) break
      this.dropKv(victim, kvEvictedStatus, nowMs)
      dropped += 1
    }
    if (dropped > 0) this.#options.onEvicted('kv-size', dropped)
    return dropped
  }
}
