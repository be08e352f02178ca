import { type Evicted, type KvLimit, kvEvictedStatus, kvStoreFullStatus, kvTenantFullStatus } from '../limits.ts'
import type { StoredKv } from '../session-record.ts'
import type { SessionStore } from '../session-store.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type MemorySession, storedKvBytes } from './memory-session.ts'
import { evictionsPerStep, type SessionTable } from './session-table.ts'

export interface MemoryStoredKvOptions {
  readonly table: SessionTable
  readonly removals: MemoryRemovals
  readonly supersededGraceMs: number
  readonly kvLimit: KvLimit | undefined
  readonly onEvicted: (what: Evicted, count: number) => void
}

/** What sessions store, and which of it goes when there is too much. Its removal is queued when nobody holds it any more. */
export class MemoryStoredKv {
  readonly #options: MemoryStoredKvOptions

  constructor(options: MemoryStoredKvOptions) {
    this.#options = options
  }

  commit({ key, createdAtMs, kv }: Parameters<SessionStore['commitKv']>[0], nowMs: number): boolean {
    const { table, removals, supersededGraceMs } = this.#options
    const session = table.findLive(key, nowMs)
    const present = session?.heldKv?.kv
    if (session !== undefined && present?.artefactId === kv.artefactId) {
      table.usage.kvStored(session.tenant)
      return true
    }
    const isForward = session?.createdAtMs === createdAtMs && kv.turn >= ownTurnOf(session)
    const mayCommit = isForward && removals.canCommit(kv.artefactId)
    const fits = mayCommit && table.usage.fits(session.tenant, kv.bytes, table.kv.releasableBytes(session))
    if (!fits || !this.#hasRoomFor(session, kv, nowMs)) {
      if (table.kv.find(kv.artefactId) === undefined) removals.queueArtefact(key, kv, nowMs)
      if (mayCommit) session.kvStatus = fits ? kvStoreFullStatus : kvTenantFullStatus
      return false
    }
    removals.commit(kv.artefactId)
    session.kvStatus = undefined
    this.giveUp(session, nowMs + supersededGraceMs)
    table.kv.add(session, kv, nowMs)
    table.resize(session)
    table.usage.kvStored(session.tenant)
    table.touch(session, nowMs)
    return true
  }

  /** Gives a session that has none the stored KV of another one. */
  share(from: MemorySession, session: MemorySession, nowMs: number): void {
    this.#options.table.kv.share(from, session, nowMs)
    this.#options.table.resize(session)
  }

  /** Takes the stored KV from a session that lives on. */
  giveUp(session: MemorySession, dueMs: number): void {
    const { table, removals } = this.#options
    const released = table.releaseKv(session, dueMs)
    if (released !== undefined) removals.queueArtefact(session.key, released, dueMs)
  }

  /** Takes stored KV from all sessions that hold it. False: there is none. */
  drop(artefactId: string, reason: string, nowMs: number): boolean {
    const { table } = this.#options
    const holders = () => table.kv.find(artefactId)?.holders ?? []
    // Those that have expired, and their branches.
    for (const { key } of holders()) table.findLive(key, nowMs)
    const live = holders()
    for (const session of live) {
      this.giveUp(session, nowMs)
      session.kvStatus = reason
    }
    return live.length > 0
  }

  /** Brings the stored KV down to the threshold of its limit, in up to `limit` steps; returns how many it took. */
  evict(limit: number, nowMs: number): number {
    const { table, kvLimit } = this.#options
    const targetBytes = kvLimit === undefined ? Number.POSITIVE_INFINITY : kvLimit.maxBytes * kvLimit.threshold
    if (table.kv.bytes <= targetBytes) return 0
    table.expireDue(limit, nowMs)
    return this.#dropDownTo(targetBytes, limit, nowMs)
  }

  /** Whether the KV fits in place of what the session has stored; evicts others where it has to. */
  #hasRoomFor(session: MemorySession, kv: StoredKv, nowMs: number): boolean {
    const { heldKv } = session
    const growth = Math.max(0, storedKvBytes(kv) - (heldKv === undefined ? 0 : storedKvBytes(heldKv.kv)))
    // The session itself may have been evicted.
    return this.#options.table.hasMemory(growth, nowMs) && session.isLive && this.#hasKvRoom(session, kv.bytes, nowMs)
  }

  #hasKvRoom(session: MemorySession, bytes: number, nowMs: number): boolean {
    const { table, kvLimit } = this.#options
    const maxBytes = kvLimit?.maxBytes ?? Number.POSITIVE_INFINITY
    if (bytes > maxBytes) return false
    const freeBytes = (): number => maxBytes - bytes + table.kv.releasableBytes(session)
    if (table.kv.bytes <= freeBytes()) return true
    table.expireDue(evictionsPerStep, nowMs)
    this.#dropDownTo(freeBytes(), Number.POSITIVE_INFINITY, nowMs, session)
    return table.kv.bytes <= freeBytes()
  }

  #dropDownTo(bytes: number, limit: number, nowMs: number, spared?: MemorySession): number {
    const { table, onEvicted } = this.#options
    let dropped = 0
    while (dropped < limit && table.kv.bytes > bytes) {
      const victim = table.kv.victim(nowMs, spared)
      if (victim === undefined) break
      if (this.drop(victim.kv.artefactId, kvEvictedStatus, nowMs)) dropped += 1
    }
    if (dropped > 0) onEvicted('kv-size', dropped)
    return dropped
  }
}

/** The turn that left a session's KV. What was shared with it comes before its own turns. */
const ownTurnOf = ({ key, heldKv }: MemorySession): number => (heldKv?.owner === key ? heldKv.kv.turn : 0)
