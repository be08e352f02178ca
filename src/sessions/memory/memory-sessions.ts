import { clampCount } from '../limits.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type {
  BeginOutcome,
  BeginTurn,
  CompleteOutcome,
  CompleteTurn,
  CreateOutcome,
  ForkedSession,
  ForkOutcome,
  NewSession,
  SessionStore,
  WholeSession,
} from '../session-store.ts'
import { beginExpired } from './begin-expired.ts'
import type { MemoryDirectory } from './memory-directory.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type MemorySession, type Tombstone, toRecord } from './memory-session.ts'
import type { MemoryStoredKv } from './memory-stored-kv.ts'
import { noBranches, type SessionTable } from './session-table.ts'
import { heldUntilMs, holdsLease, leaseOf, releaseLease } from './turn-leases.ts'

/** Applies creates, forks, turns and management to the sessions of a table. Synchronous, so every method is atomic. */
export class MemorySessions {
  readonly #table: SessionTable
  readonly #directory: MemoryDirectory
  readonly #storedKv: MemoryStoredKv
  readonly #removals: MemoryRemovals

  constructor(options: {
    readonly table: SessionTable
    readonly directory: MemoryDirectory
    readonly storedKv: MemoryStoredKv
    readonly removals: MemoryRemovals
  }) {
    this.#table = options.table
    this.#directory = options.directory
    this.#storedKv = options.storedKv
    this.#removals = options.removals
  }

  create(wanted: NewSession, nowMs: number): CreateOutcome {
    const { key, tenant, retryOf } = wanted
    const known = retryOf && this.#table.retryKeys.find(retryOf.digest, nowMs)
    const mayFind = retryOf !== undefined && retryOf.use !== 'record-only'
    if (mayFind && known !== undefined && known.bodyDigest !== retryOf.bodyDigest) return { kind: 'key-reused' }
    // Looked up only now: it may end the session, and its key is forgotten with it.
    const named = known?.session && this.#table.findOwned(known.session, tenant, nowMs)
    const earlier = retryOf?.use === 'find-or-record' || (named?.turns ?? 0) <= 1 ? named : undefined
    if (mayFind && earlier !== undefined) return this.#join(earlier, wanted, nowMs)
    const present = this.#table.findLive(key, nowMs)
    if (present !== undefined) {
      return present.tenant === tenant ? this.#join(present, wanted, nowMs) : { kind: 'key-reused' }
    }
    const expiresAtMs = nowMs + wanted.ttlSeconds * 1000
    const lease = leaseOf(wanted, nowMs)
    const refusal = this.#table.usage.refusalOfNew(tenant, wanted.turnId, nowMs)
    if (refusal !== undefined) return refusal
    const leases = [lease]
    const retryDigest = retryOf?.digest
    const state = { state: 'creating', by: 'id', branches: noBranches } as const
    const added = this.#table.add({ ...wanted, ...state, retryDigest, expiresAtMs, leases }, nowMs)
    this.#table.usage.beginTurn(tenant, lease)
    if (retryOf !== undefined) {
      const isAmbiguous = earlier !== undefined || (known !== undefined && known.session === undefined)
      this.#table.retryKeys.remember(retryOf, isAmbiguous ? undefined : key, nowMs)
    }
    return { kind: 'created', record: toRecord(added) }
  }

  begin({ key, tenant, turnId, leaseMs }: BeginTurn, nowMs: number): BeginOutcome {
    const { usage } = this.#table
    const lease = leaseOf({ turnId, leaseMs }, nowMs)
    const session = this.#table.findLive(key, nowMs)
    if (session?.tenant === tenant) {
      const refusal = usage.refusalOfTurn(tenant, turnId, nowMs)
      if (refusal !== undefined) return refusal
      usage.beginTurn(tenant, lease)
      this.#table.take(session, lease, nowMs)
      return { kind: 'active', record: toRecord(session), nowMs }
    }
    const tombstone = session === undefined ? this.#table.findTombstone(key, nowMs) : undefined
    if (tombstone?.tenant !== tenant) return { kind: 'unknown' }
    if (tombstone.kind === 'deleted') return { kind: 'deleted' }
    const refusal = usage.refusalOfRestart(tenant, turnId, nowMs)
    if (refusal !== undefined) return refusal
    usage.beginTurn(tenant, lease)
    return beginExpired(tombstone, lease, nowMs)
  }

  fork({ from, session }: ForkedSession, nowMs: number): ForkOutcome {
    const parent = this.#table.findOwned(from.key, from.tenant, nowMs)
    if (parent === undefined) return { kind: 'unknown' }
    const present = this.#table.findLive(session.key, nowMs)
    if (present !== undefined) {
      return present.tenant === from.tenant ? { kind: 'forked', record: toRecord(present) } : { kind: 'unknown' }
    }
    const refusal = this.#table.usage.refusalOfSession(from.tenant, nowMs)
    if (refusal !== undefined) return refusal
    // So that it is not evicted for its fork.
    this.#table.touch(parent, nowMs)
    const { tenant, model, pod, turns, kvStatus } = parent
    const { ttlSeconds = parent.ttlSeconds } = session
    const state = { state: 'active', by: 'id', branches: noBranches, retryDigest: undefined, leases: [] } as const
    const expiresAtMs = nowMs + ttlSeconds * 1000
    const wanted = { ...session, ...state, tenant, model, pod, ttlSeconds, expiresAtMs }
    const added = this.#table.add(wanted, nowMs)
    added.turns = turns
    added.kvStatus = kvStatus
    this.#storedKv.share(parent, added, nowMs)
    return { kind: 'forked', record: toRecord(added) }
  }

  complete(turn: CompleteTurn, nowMs: number): CompleteOutcome {
    this.#table.usage.endTurn(turn.tenant, turn.turnId)
    const session = this.#table.findLive(turn.key, nowMs)
    const tombstone = session === undefined ? this.#table.findTombstone(turn.key, nowMs) : undefined
    const owner = session?.tenant ?? tombstone?.tenant ?? turn.tenant
    if (owner !== turn.tenant) return { kind: 'gone' }
    if (session !== undefined) {
      const isCounted = holdsLease(session.leases, turn.turnId)
      if (isCounted) this.#count(session, turn, nowMs)
      return { kind: 'completed', record: toRecord(session), isCounted }
    }
    if (tombstone?.kind === 'expired' && holdsLease(tombstone.leases, turn.turnId)) {
      return { kind: 'completed', record: toRecord(this.#revive(tombstone, turn, nowMs)), isCounted: true }
    }
    if (tombstone !== undefined) tombstone.leases = releaseLease(tombstone.leases, turn.turnId)
    // The turn may have left KV in its pod after the session's removal had passed there.
    this.#removals.queueSession(turn.key, undefined, nowMs)
    return { kind: 'gone' }
  }

  abandon({ key, tenant, turnId }: Parameters<SessionStore['abandon']>[0], nowMs: number): void {
    this.#table.usage.endTurn(tenant, turnId)
    const session = this.#table.findLive(key, nowMs)
    if (session === undefined) {
      const tombstone = this.#table.findTombstone(key, nowMs)
      if (tombstone !== undefined) tombstone.leases = releaseLease(tombstone.leases, turnId)
      // The turn may have left KV in its pod after the session's removal had passed there.
      this.#removals.queueSession(key, undefined, nowMs)
      return
    }
    session.leases = releaseLease(session.leases, turnId)
    if (session.state === 'creating' && heldUntilMs(session.leases) <= nowMs) {
      this.#table.discard(session, nowMs)
      return
    }
    this.#table.reschedule(session)
    this.#table.touch(session, nowMs)
  }

  get(key: SessionKey, tenant: TenantKey, nowMs: number): WholeSession | undefined {
    const session = this.#table.findOwned(key, tenant, nowMs)
    return session && this.#directory.whole(session, nowMs)
  }

  setTtl(key: SessionKey, tenant: TenantKey, ttlSeconds: number, nowMs: number): WholeSession | undefined {
    const session = this.#table.findOwned(key, tenant, nowMs)
    if (session === undefined) return undefined
    session.ttlSeconds = ttlSeconds
    session.expiresAtMs = nowMs + ttlSeconds * 1000
    this.#table.reschedule(session)
    return this.#directory.whole(session, nowMs)
  }

  remove(key: SessionKey, tenant: TenantKey, nowMs: number): boolean {
    const ended = this.#table.findLive(key, nowMs) ?? this.#findReviving(key, nowMs)
    if (ended?.tenant !== tenant) return false
    this.#table.delete(key, ended, nowMs)
    return true
  }

  setKvStatus({ key, status }: { readonly key: SessionKey; readonly status: string }, nowMs: number): void {
    const session = this.#table.findLive(key, nowMs)
    if (session !== undefined) session.kvStatus = status
  }

  /** An expired session that a turn may still revive. */
  #findReviving(key: SessionKey, nowMs: number): Tombstone | undefined {
    const tombstone = this.#table.findTombstone(key, nowMs)
    return tombstone?.kind === 'expired' && tombstone.leases.length > 0 ? tombstone : undefined
  }

  #join(session: MemorySession, wanted: NewSession, nowMs: number): CreateOutcome {
    const lease = leaseOf(wanted, nowMs)
    const { usage } = this.#table
    const refusal = usage.refusalOfTurn(session.tenant, lease.turnId, nowMs)
    if (refusal !== undefined) return refusal
    usage.beginTurn(session.tenant, lease)
    this.#table.take(session, lease, nowMs)
    return { kind: 'existing', record: toRecord(session) }
  }

  #revive(tombstone: Tombstone, turn: CompleteTurn, nowMs: number): MemorySession {
    const { key, pod } = turn
    const expiresAtMs = nowMs + tombstone.ttlSeconds * 1000
    const wanted = { ...tombstone, key, pod, state: 'active', expiresAtMs, retryDigest: undefined } as const
    const session = this.#table.add(wanted, nowMs)
    this.#removals.narrowSession(turn.key, nowMs)
    this.#count(session, turn, nowMs)
    return session
  }

  #count(session: MemorySession, { turnId, pod, usage, expiry }: CompleteTurn, nowMs: number): void {
    session.leases = releaseLease(session.leases, turnId)
    session.state = 'active'
    session.retryDigest = undefined
    session.turns += 1
    session.prompt = clampCount(session.prompt + clampCount(usage.prompt))
    session.output = clampCount(session.output + clampCount(usage.output))
    session.cached = clampCount(session.cached + clampCount(usage.cached))
    session.pod = pod
    if (expiry.kind === 'slide') session.expiresAtMs = nowMs + session.ttlSeconds * 1000
    if (expiry.kind === 'set') {
      session.ttlSeconds = expiry.ttlSeconds
      session.expiresAtMs = Math.max(expiry.expiresAtMs, session.createdAtMs)
    }
    this.#table.reschedule(session)
    this.#table.touch(session, nowMs)
  }
}
