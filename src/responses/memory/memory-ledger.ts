import { type TenantName, tenantNameLength } from '../../sessions/session-directory.ts'
import type { TenantKey } from '../../sessions/session-record.ts'
import { Deadlines } from './deadlines.ts'
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
  /** Begins to count an entry that its tenant has already. */
  add(entry: HandleEntry | NodeEntry, bytes: number): void
  charge(entry: HandleEntry | NodeEntry, change: { readonly bytes: number; readonly endsMs: number }): void
  drop(entry: HandleEntry | NodeEntry): void
}

export const createMemoryLedger = (options: {
  readonly maxBytes: number
  readonly now: () => number
}): MemoryLedger => {
  const tenants = new Map<string, TenantHistory>()
  let totalBytes = 0

  const charge = (
    entry: HandleEntry | NodeEntry,
    change: { readonly bytes: number; readonly endsMs: number },
  ): void => {
    const more = change.bytes - entry.bytes
    const isSooner = change.endsMs < entry.endsMs
    entry.bytes += more
    entry.owner.bytes += more
    totalBytes += more
    entry.endsMs = change.endsMs
    if (isSooner) deadlines.add(entry)
  }

  const drop = (entry: HandleEntry | NodeEntry): void => {
    const { name, owner } = entry
    charge(entry, { bytes: 0, endsMs: entry.endsMs })
    deadlines.ended(entry)
    if (entry.kind === 'handle') owner.handles.delete(name)
    else owner.nodes.delete(name)
    forgetIfEmpty(owner)
  }

  const forgetIfEmpty = (owner: TenantHistory): void => {
    if (owner.handles.size === 0 && owner.nodes.size === 0) tenants.delete(owner.tenant)
  }

  const deadlines = new Deadlines<HandleEntry | NodeEntry>(drop)

  const open = (key: TenantKey | TenantName): Moment => {
    const tenant = key.slice(0, tenantNameLength)
    const nowMs = options.now()
    deadlines.endUntil(nowMs)
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
    add: (entry, bytes) => {
      charge(entry, { bytes, endsMs: entry.endsMs })
      deadlines.add(entry)
    },
  }
}
