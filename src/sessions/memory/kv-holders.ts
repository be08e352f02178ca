import { maxHolders } from '../limits.ts'
import type { StoredKv } from '../session-record.ts'
import { IdleOrder } from './idle-order.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { HeldKv, type MemorySession } from './memory-session.ts'
import { ShardedMap } from './sharded-map.ts'
import type { TenantUsage } from './tenant-usage.ts'

/** All stored KV. It is counted once, however many sessions hold it. */
export class KvHolders {
  readonly #usage: Pick<TenantUsage, 'addKv'>
  readonly #removals: Pick<MemoryRemovals, 'queueArtefact'>
  readonly #held = new ShardedMap<string, HeldKv>()
  readonly #order = new IdleOrder<HeldKv>()

  constructor(usage: Pick<TenantUsage, 'addKv'>, removals: Pick<MemoryRemovals, 'queueArtefact'>) {
    this.#usage = usage
    this.#removals = removals
  }

  get bytes(): number {
    return this.#order.bytes
  }

  find(artefactId: string): HeldKv | undefined {
    return this.#held.get(artefactId)
  }

  /** Makes new KV that of a session that has none. */
  add(session: MemorySession, kv: StoredKv, nowMs: number): void {
    const held = new HeldKv(kv, session, nowMs)
    held.place = this.#order.add(held, kv.bytes)
    this.#held.set(kv.artefactId, held)
    this.#usage.addKv(session.tenant, kv.bytes)
    session.heldKv = held
  }

  /** Makes the KV of one session that of another one, too, which has none. What too many hold it does without. */
  share({ heldKv: held }: MemorySession, session: MemorySession, nowMs: number): void {
    if (held === undefined || held.holders.length >= maxHolders) return
    held.holders = [...held.holders, session]
    held.isShared = true
    session.heldKv = held
    this.touch(session, nowMs)
  }

  /** Takes a session's KV from it. Returns what it had alone. What was shared has a removal of its own, due at `dueMs`. */
  release(session: MemorySession, dueMs: number): StoredKv | undefined {
    const held = session.heldKv
    session.heldKv = undefined
    if (held === undefined) return undefined
    held.holders = held.holders.filter((holder) => holder !== session)
    if (held.holders.length > 0) return undefined
    if (held.place !== undefined) this.#order.delete(held.place)
    this.#held.delete(held.kv.artefactId)
    this.#usage.addKv(session.tenant, -held.kv.bytes)
    if (!held.isShared) return held.kv
    this.#removals.queueArtefact(held.owner, held.kv, dueMs)
    return undefined
  }

  /** Bytes that would go with the KV of a session. */
  releasableBytes({ heldKv }: MemorySession): number {
    return heldKv?.holders.length === 1 ? heldKv.kv.bytes : 0
  }

  /** Marks the KV of a session as used. */
  touch({ heldKv }: MemorySession, nowMs: number): void {
    if (heldKv?.place === undefined) return
    heldKv.usedMs = nowMs
    this.#order.touch(heldKv.place)
  }

  /** What to evict next; undefined when sessions in turns hold all but what `spared` has. */
  victim(nowMs: number, spared: MemorySession | undefined): HeldKv | undefined {
    return this.#order.victim(nowMs, spared?.heldKv)
  }
}
