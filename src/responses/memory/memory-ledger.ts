import { DeadlineQueue } from '../../async/deadline-queue.ts'
import { nameOfTenant, type TenantName } from '../../sessions/session-directory.ts'
import type { TenantKey } from '../../sessions/session-record.ts'
import type { HandleEntry, NodeEntry, TenantHistory } from './tenant-history.ts'

/** A tenant's data, without what has ended by now. */
export interface Moment {
  readonly history: TenantHistory
  readonly nowMs: number
}

/** What every tenant has, what it takes, and when it ends. */
export interface MemoryLedger {
  /** Runs on the tenant's data, made on demand; no operation leaves an empty tenant behind. */
  within<T>(tenant: TenantKey | TenantName, run: (at: Moment) => T): T
  hasRoom(history: TenantHistory, bytes: number, maxTenantBytes: number): boolean
  /** Counts what an entry takes from now on, until it ends. Default of `endsMs`: as before. */
  charge(entry: HandleEntry | NodeEntry, bytes: number, endsMs?: number): void
  drop(entry: HandleEntry | NodeEntry): void
}

export const createMemoryLedger = (options: {
  readonly maxBytes: number
  readonly now: () => number
}): MemoryLedger => {
  const tenants = new Map<string, TenantHistory>()
  const deadlines = new DeadlineQueue<HandleEntry | NodeEntry>()
  let totalBytes = 0

  const charge: MemoryLedger['charge'] = (entry, bytes, endsMs = entry.dueMs) => {
    const more = bytes - entry.bytes
    entry.bytes += more
    entry.owner.bytes += more
    totalBytes += more
    deadlines.set(entry, endsMs)
  }

  const drop = (entry: HandleEntry | NodeEntry): void => {
    const { name, owner } = entry
    charge(entry, 0)
    deadlines.delete(entry)
    if (entry.kind === 'handle') owner.handles.delete(name)
    else owner.nodes.delete(name)
    forgetIfEmpty(owner)
  }

  const forgetIfEmpty = (owner: TenantHistory): void => {
    if (owner.handles.size === 0 && owner.nodes.size === 0) tenants.delete(owner.tenant)
  }

  const open = (key: TenantKey | TenantName): Moment => {
    const tenant = nameOfTenant(key)
    const nowMs = options.now()
    for (let due = deadlines.firstDue(nowMs); due !== undefined; due = deadlines.firstDue(nowMs)) drop(due)
    const known = tenants.get(tenant)
    if (known !== undefined) return { nowMs, history: known }
    const history: TenantHistory = { tenant, handles: new Map(), nodes: new Map(), bytes: 0 }
    tenants.set(tenant, history)
    return { nowMs, history }
  }

  const within = <T>(tenant: TenantKey | TenantName, run: (at: Moment) => T): T => {
    const at = open(tenant)
    const result = run(at)
    forgetIfEmpty(at.history)
    return result
  }

  return {
    within,
    charge,
    drop,
    hasRoom: (history, bytes, maxTenantBytes) =>
      history.bytes + bytes <= maxTenantBytes && totalBytes + bytes <= options.maxBytes,
  }
}
