import { DeadlineQueue } from '../../async/deadline-queue.ts'
import type { Evicted, TenantLimits } from '../limits.ts'
import type { TenantName } from '../session-directory.ts'
import { branchKeyOf, type SessionKey, type StoredKv, type TenantKey } from '../session-record.ts'
import { StoreUnavailableError } from '../session-store.ts'
import { IdleOrder } from './idle-order.ts'
import { KvHolders } from './kv-holders.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type MemorySession, type NewMemorySession, sessionBytes, type Tombstone } from './memory-session.ts'
import { NamedSessions } from './named-sessions.ts'
import { RetryKeys } from './retry-keys.ts'
import { ShardedMap } from './sharded-map.ts'
import { TenantLists } from './tenant-lists.ts'
import { TenantUsage } from './tenant-usage.ts'
import { Tombstones } from './tombstones.ts'
import { dueMsOf, hasExpired, heldUntilMs, type TurnLease, takeLease } from './turn-leases.ts'

export interface SessionTableOptions {
  readonly removals: MemoryRemovals
  /** Live sessions at most, and tombstones and idempotency keys at most, each. */
  readonly maxSessions: number
  readonly tombstoneSeconds: number
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

/** One step ends so many sessions at most, so that no caller waits long after memory has shrunk. */
export const evictionsPerStep = 64

/** Every session and tombstone, with the indexes over them. It ends sessions; MemorySessions applies turns to them. */
export class SessionTable {
  readonly #sessions = new ShardedMap<SessionKey, MemorySession>()
  readonly #tombstones: Tombstones
  readonly retryKeys: RetryKeys
  /** What tenants use of what they may have. */
  readonly usage: TenantUsage
  readonly #deadlines = new DeadlineQueue<MemorySession>()
  readonly #order = new IdleOrder<MemorySession>()
  readonly #tenants = new TenantLists()
  readonly #named = new NamedSessions()
  readonly kv: KvHolders
  readonly #options: SessionTableOptions
  #ceilingBytes = Number.POSITIVE_INFINITY
  #sequence = 0

  constructor(options: SessionTableOptions) {
    this.#options = options
    this.#tombstones = new Tombstones(options)
    this.retryKeys = new RetryKeys(options.maxSessions)
    this.usage = new TenantUsage(options.tenantLimits, (...of) => this.#countOf(...of))
    this.kv = new KvHolders(this.usage, options.removals)
  }

  get size(): number {
    return this.#sessions.size
  }

  get bytes(): number {
    return this.#order.bytes + this.#tombstones.bytes
  }

  /** Limits the memory of sessions and tombstones together, from the next step on. */
  setCeiling(bytes: number): void {
    this.#ceilingBytes = bytes
  }

  /** A live session. One that has expired is ended first: no caller sees one that the sweep has not reached yet. */
  findLive(key: SessionKey, nowMs: number): MemorySession | undefined {
    const session = this.#sessions.get(key)
    if (session === undefined || !hasExpired(session, nowMs)) return session
    this.#endExpired(session, nowMs)
    return undefined
  }

  findOwned(key: SessionKey, tenant: TenantKey, nowMs: number): MemorySession | undefined {
    const session = this.findLive(key, nowMs)
    return session?.tenant === tenant ? session : undefined
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
    const hasRoom = this.#makeRoom(sessionBytes({ ...wanted, heldKv: undefined }), nowMs)
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
      heldKv: undefined,
      kvStatus: undefined,
      retryDigest: wanted.retryDigest,
      leases: wanted.leases,
      by: wanted.by,
      branches: wanted.branches,
      usedMs: nowMs,
      dueMs: 0,
      entry: undefined,
      place: undefined,
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
    this.kv.touch(session, nowMs)
  }

  /** Takes a lease of a session for a turn that begins. */
  take(session: MemorySession, lease: TurnLease, nowMs: number): void {
    session.leases = takeLease(session.leases, lease, nowMs)
    this.touch(session, nowMs)
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
    const { key, place } = session
    for (const branch of this.branchesOf(key, session, nowMs)) this.#endExpired(branch, nowMs)
    const released = this.releaseKv(session, nowMs)
    if (place !== undefined) this.#order.delete(place)
    session.place = undefined
    this.#deadlines.delete(session)
    this.#sessions.delete(key)
    session.isLive = false
    if (session.by !== 'prompt') this.#tenants.delete(session)
    this.#named.delete(session)
    this.#options.removals.queueSession(key, released, nowMs)
  }

  /** Takes a session's stored KV from it, as {@link KvHolders.release} does. */
  releaseKv(session: MemorySession, dueMs: number): StoredKv | undefined {
    const released = this.kv.release(session, dueMs)
    this.resize(session)
    return released
  }

  /** To be called when a session's KV has changed. It stays where it is in the order by memory: a loss of KV is no use. */
  resize(session: MemorySession): void {
    if (session.place !== undefined) this.#order.resize(session.place, sessionBytes(session))
  }

  /** Expired sessions go first. */
  #makeRoom(bytes: number, nowMs: number): boolean {
    while (this.size >= this.#options.maxSessions) {
      if (this.expireDue(1, nowMs) === 0 && !this.#evictOne('session-count', nowMs)) return false
    }
    return this.hasMemory(bytes, nowMs)
  }

  /** Whether there is memory for so many bytes more; frees some where it has to. */
  hasMemory(bytes: number, nowMs: number): boolean {
    const fits = (): boolean => this.bytes + bytes <= this.#ceilingBytes
    // After a full step memory may still be short, yet it is granted: the next steps free more than is added.
    return fits() || this.relieve(evictionsPerStep, nowMs, bytes) === evictionsPerStep || fits()
  }

  /** Frees memory while it is short, in up to `limit` steps: expired sessions first, then tombstones, then live sessions. */
  relieve(limit: number, nowMs: number, addedBytes = 0): number {
    let freed = 0
    while (freed < limit && this.bytes + addedBytes > this.#ceilingBytes) {
      const hasFreed =
        this.expireDue(1, nowMs) > 0 || this.#tombstones.forgetOldest(nowMs) || this.#evictOne('session-memory', nowMs)
      if (!hasFreed) break
      freed += 1
    }
    return freed
  }

  #evictOne(reason: 'session-count' | 'session-memory', nowMs: number): boolean {
    const victim = this.#order.victim(nowMs)
    if (victim === undefined) return false
    this.#endWithTombstone(victim, 'eviction', nowMs)
    this.#options.onEvicted(reason, 1)
    return true
  }
}
