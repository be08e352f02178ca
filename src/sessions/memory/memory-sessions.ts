import type { SessionKey, SessionRecord, TenantKey, TokenTotals } from '../session-record.ts'
import {
  type BeginOutcome,
  type BeginTurn,
  type CompleteOutcome,
  type CompleteTurn,
  type CreateOutcome,
  type NewSession,
  type SessionPage,
  StoreUnavailableError,
} from '../session-store.ts'
import { toWhole } from '../whole-number.ts'
import { type LiveSession, type NewLiveSession, toRecord, toSessionForTurn } from './live-session.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import type { SessionTable } from './session-table.ts'
import type { ExpiredTombstone } from './tombstone.ts'
import { holdsLease, releaseLease, type TurnLease, takeLease } from './turn-leases.ts'

const addTokens = (total: TokenTotals, more: TokenTotals): TokenTotals => ({
  prompt: toWhole(total.prompt + toWhole(more.prompt)),
  output: toWhole(total.output + toWhole(more.output)),
  cached: toWhole(total.cached + toWhole(more.cached)),
})

/** What turns do to the sessions of a table. Synchronous, so every method is one step. */
export class MemorySessions {
  readonly #table: SessionTable
  readonly #removals: MemoryRemovals

  constructor(options: { readonly table: SessionTable; readonly removals: MemoryRemovals }) {
    this.#table = options.table
    this.#removals = options.removals
  }

  create(wanted: NewSession, nowMs: number): CreateOutcome {
    const { key, tenant, retryOf } = wanted
    if (retryOf?.use === 'find-or-record') {
      const earlier = this.#table.retryKeys.find(retryOf.digest, nowMs)
      if (earlier !== undefined && earlier.bodyDigest !== retryOf.bodyDigest) return { kind: 'key-reused' }
      const session = earlier && this.#findOwned(earlier.session, tenant, nowMs)
      if (session !== undefined) return this.#join(session, wanted, nowMs)
    }
    const present = this.#table.findLive(key, nowMs)
    if (present !== undefined) {
      return present.tenant === tenant ? this.#join(present, wanted, nowMs) : { kind: 'key-reused' }
    }
    const added = this.#add(wanted, nowMs)
    if (retryOf !== undefined) this.#table.retryKeys.remember(retryOf, key, nowMs)
    return { kind: 'created', record: toRecord(added, key) }
  }

  begin({ key, tenant, turnId, leaseMs }: BeginTurn, nowMs: number): BeginOutcome {
    const lease = { turnId, untilMs: nowMs + leaseMs }
    const session = this.#table.findLive(key, nowMs)
    if (session?.tenant === tenant) {
      this.#table.leases.take(session.slot, lease, nowMs)
      this.#table.touch(session, nowMs)
      return { kind: 'active', record: toSessionForTurn(session, key), nowMs }
    }
    const tombstone = session === undefined ? this.#table.findTombstone(key, nowMs) : undefined
    if (tombstone?.tenant !== tenant) return { kind: 'unknown' }
    if (tombstone.kind === 'deleted') return { kind: 'deleted' }
    tombstone.leases = takeLease(tombstone.leases, lease, nowMs)
    tombstone.forgetAtMs = Math.max(tombstone.forgetAtMs, lease.untilMs)
    const { ttlSeconds, model, cause } = tombstone
    return { kind: 'expired', ttlSeconds, model, cause, nowMs }
  }

  complete(turn: CompleteTurn, nowMs: number): CompleteOutcome {
    const session = this.#table.findLive(turn.key, nowMs)
    const tombstone = session === undefined ? this.#table.findTombstone(turn.key, nowMs) : undefined
    const owner = session?.tenant ?? tombstone?.tenant ?? turn.tenant
    if (owner !== turn.tenant) return { kind: 'gone' }
    if (session !== undefined) {
      if (this.#table.leases.holds(session.slot, turn.turnId)) this.#count(session, turn, nowMs)
      return { kind: 'completed', record: toRecord(session, turn.key) }
    }
    if (tombstone?.kind === 'expired' && holdsLease(tombstone.leases, turn.turnId)) {
      return { kind: 'completed', record: toRecord(this.#revive(tombstone, turn, nowMs), turn.key) }
    }
    // The turn may have left KV in its pod after the session's removal had passed there.
    this.#removals.queueSession(turn.key, undefined, nowMs)
    return { kind: 'gone' }
  }

  abandon({ key, turnId }: { readonly key: SessionKey; readonly turnId: string }, nowMs: number): void {
    const session = this.#table.findLive(key, nowMs)
    if (session === undefined) {
      const tombstone = this.#table.findTombstone(key, nowMs)
      if (tombstone?.kind === 'expired') tombstone.leases = releaseLease(tombstone.leases, turnId)
      // The turn may have left KV in its pod after the session's removal had passed there.
      this.#removals.queueSession(key, undefined, nowMs)
      return
    }
    this.#table.leases.release(session.slot, turnId)
    if (session.state === 'creating' && this.#table.leases.heldUntilMs(session.slot) <= nowMs) {
      this.#table.vanish(session, nowMs)
      return
    }
    this.#table.reschedule(session)
    this.#table.touch(session, nowMs)
  }

  get(key: SessionKey, tenant: TenantKey, nowMs: number): SessionRecord | undefined {
    const session = this.#findOwned(key, tenant, nowMs)
    return session && toRecord(session, key)
  }

  list(tenant: TenantKey, after: SessionKey | undefined, limit: number, nowMs: number): SessionPage {
    const sessions = this.#table.list(tenant, after, limit + 1, nowMs)
    return {
      records: sessions.slice(0, limit).map((session) => toRecord(session, session.key)),
      hasMore: sessions.length > limit,
    }
  }

  setTtl(key: SessionKey, tenant: TenantKey, ttlSeconds: number, nowMs: number): SessionRecord | undefined {
    const session = this.#findOwned(key, tenant, nowMs)
    if (session === undefined) return undefined
    session.ttlSeconds = ttlSeconds
    session.expiresAtMs = nowMs + ttlSeconds * 1000
    this.#table.reschedule(session)
    return toRecord(session, key)
  }

  remove(key: SessionKey, tenant: TenantKey, nowMs: number): boolean {
    const ended = this.#table.findLive(key, nowMs) ?? this.#findReviving(key, nowMs)
    if (ended?.tenant !== tenant) return false
    this.#table.delete(key, ended, nowMs)
    return true
  }

  /** An expired session that a turn may start anew any moment. */
  #findReviving(key: SessionKey, nowMs: number): ExpiredTombstone | undefined {
    const tombstone = this.#table.findTombstone(key, nowMs)
    return tombstone?.kind === 'expired' && tombstone.leases.length > 0 ? tombstone : undefined
  }

  #findOwned(key: SessionKey, tenant: TenantKey, nowMs: number): LiveSession | undefined {
    const session = this.#table.findLive(key, nowMs)
    return session?.tenant === tenant ? session : undefined
  }

  #join(session: LiveSession, { turnId, leaseMs }: NewSession, nowMs: number): CreateOutcome {
    this.#table.leases.take(session.slot, { turnId, untilMs: nowMs + leaseMs }, nowMs)
    this.#table.touch(session, nowMs)
    return { kind: 'existing', record: toRecord(session, session.key) }
  }

  #add(wanted: NewSession, nowMs: number): LiveSession {
    const { key, tenant, sealedId, model, ttlSeconds, pod, turnId, leaseMs, retryOf } = wanted
    return this.#insert(
      {
        key,
        tenant,
        sealedId,
        model,
        ttlSeconds,
        pod,
        state: 'creating',
        createdAtMs: nowMs,
        expiresAtMs: nowMs + ttlSeconds * 1000,
        retryDigest: retryOf?.digest,
      },
      [{ turnId, untilMs: nowMs + leaseMs }],
      nowMs,
    )
  }

  #revive(tombstone: ExpiredTombstone, turn: CompleteTurn, nowMs: number): LiveSession {
    const { tenant, sealedId, model, ttlSeconds, leases } = tombstone
    const session = this.#insert(
      {
        key: turn.key,
        tenant,
        sealedId,
        model,
        ttlSeconds,
        pod: turn.pod,
        state: 'active',
        createdAtMs: nowMs,
        expiresAtMs: nowMs + ttlSeconds * 1000,
        retryDigest: undefined,
      },
      leases,
      nowMs,
    )
    this.#removals.narrowSession(turn.key, nowMs)
    this.#count(session, turn, nowMs)
    return session
  }

  #insert(session: NewLiveSession, leases: readonly TurnLease[], nowMs: number): LiveSession {
    const added = this.#table.add(session, leases, nowMs)
    if (added === undefined) {
      throw new StoreUnavailableError('The session store is full, and every session in it is in use')
    }
    return added
  }

  #count(session: LiveSession, { turnId, pod, usage, expiry }: CompleteTurn, nowMs: number): void {
    this.#table.leases.release(session.slot, turnId)
    session.state = 'active'
    session.retryDigest = undefined
    session.turns += 1
    session.tokens = addTokens(session.tokens, usage)
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
