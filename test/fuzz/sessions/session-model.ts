import {
  branchKeyOf,
  type SessionKey,
  type StoredKv,
  type TenantKey,
  type TokenTotals,
} from '../../../src/sessions/session-record.ts'
import type { NewSession, TurnExpiry } from '../../../src/sessions/session-store.ts'
import { kvBytesOf, type ModelOptions, type ModelSession, ownTurnOf, takeLease } from './model-session.ts'
import { RemovalModel } from './removal-model.ts'
import { TenantModel } from './tenant-model.ts'

const noTokens: TokenTotals = { prompt: 0, output: 0, cached: 0 }

/** What a store must do, as plainly as possible: each step looks at everything one by one, and ends what is over. */
export class SessionModel {
  readonly sessions = new Map<SessionKey, ModelSession>()
  readonly removals = new RemovalModel(() => this.nowMs)
  readonly retryKeys = new Map<string, { session: SessionKey | undefined; bodyDigest: string; forgetAtMs: number }>()
  readonly #options: ModelOptions
  readonly tenants: TenantModel
  nowMs = 0
  /** Who stored KV that was shared. */
  readonly #owners = new Map<string, SessionKey>()

  constructor(options: ModelOptions) {
    this.#options = options
    this.tenants = new TenantModel(this, options.tenantLimits)
  }

  advance(milliseconds: number): void {
    this.nowMs += milliseconds
    for (const [key, session] of this.sessions) {
      if (!this.isLive(session) && session.forgetAtMs <= this.nowMs) this.sessions.delete(key)
    }
    for (const [digest, { forgetAtMs }] of this.retryKeys) {
      if (forgetAtMs <= this.nowMs) this.retryKeys.delete(digest)
    }
  }

  isLive({ state }: ModelSession): boolean {
    return state === 'creating' || state === 'active'
  }

  isOver(session: ModelSession): boolean {
    return (
      this.isLive(session) &&
      !this.isHeld(session) &&
      (session.state === 'creating' || session.expiresAtMs <= this.nowMs)
    )
  }

  isHeld(session: ModelSession): boolean {
    return [...session.leases.values()].some((untilMs) => untilMs > this.nowMs)
  }

  /** What all sessions have stored, those included whose end nobody has noticed yet; without that of one session. */
  kvBytes(besides?: SessionKey): number {
    return kvBytesOf([...this.sessions.values()].filter(({ key }) => key !== besides))
  }

  /** Whether a commit would have to make room. */
  isTooMuch(key: SessionKey, { bytes }: StoredKv): boolean {
    return this.kvBytes(key) + bytes > this.#options.kvLimit.maxBytes
  }

  /** A session as anyone sees it: one whose time is over is ended by the look. */
  look(key: SessionKey): ModelSession | undefined {
    const session = this.sessions.get(key)
    if (session !== undefined && this.isOver(session)) {
      if (session.state === 'creating') this.#discard(session)
      else this.endWithTombstone(session, 'expired')
    }
    return this.sessions.get(key)
  }

  live(key: SessionKey, tenant?: TenantKey): ModelSession | undefined {
    const session = this.look(key)
    return session && this.isLive(session) && (tenant ?? session.tenant) === session.tenant ? session : undefined
  }

  liveOf(tenant: TenantKey): readonly ModelSession[] {
    return [...this.sessions.values()].flatMap(
      (session) => (session.tenant === tenant && session.isListed && this.live(session.key)) || [],
    )
  }

  create(wanted: NewSession): {
    readonly kind: 'created' | 'existing' | 'key-reused' | 'limited'
    readonly key: SessionKey
  } {
    const { key, tenant, turnId, leaseMs, retryOf } = wanted
    const known = retryOf && this.retryKeys.get(retryOf.digest)
    const finds = retryOf !== undefined && retryOf.use !== 'record-only'
    if (finds && known !== undefined && known.bodyDigest !== retryOf.bodyDigest) return { kind: 'key-reused', key }
    const named = known?.session && this.live(known.session, tenant)
    const earlier = retryOf?.use === 'find-or-record' || (named?.turns ?? 0) <= 1 ? named : undefined
    const present = (finds ? earlier : undefined) ?? this.live(key)
    if (present !== undefined) return this.#join(present, wanted)
    const limit = this.tenants.limitOfSession(tenant, { isNew: true }) ?? this.tenants.limitOfTurn(tenant, turnId)
    if (limit !== undefined) return { kind: 'limited', key }
    this.tenants.beginTurn(tenant, turnId, leaseMs)
    this.add({ ...wanted, isListed: true, branches: new Map() })
    if (retryOf !== undefined) {
      const { digest, bodyDigest, rememberMs } = retryOf
      const isAmbiguous = earlier !== undefined || (known !== undefined && known.session === undefined)
      this.retryKeys.set(digest, {
        session: isAmbiguous ? undefined : key,
        bodyDigest,
        forgetAtMs: this.nowMs + rememberMs,
      })
    }
    return { kind: 'created', key }
  }

  #join(
    present: ModelSession,
    { tenant, turnId, leaseMs }: NewSession,
  ): { readonly kind: 'existing' | 'key-reused' | 'limited'; readonly key: SessionKey } {
    const { key } = present
    if (present.tenant !== tenant) return { kind: 'key-reused', key }
    if (this.tenants.limitOfTurn(tenant, turnId) !== undefined) return { kind: 'limited', key }
    this.tenants.beginTurn(tenant, turnId, leaseMs)
    takeLease(present, { turnId, leaseMs }, this.nowMs)
    return { kind: 'existing', key }
  }

  begin(
    key: SessionKey,
    tenant: TenantKey,
    turnId: string,
    leaseMs: number,
  ): ModelSession['state'] | 'unknown' | 'limited' {
    const session = this.look(key)
    if (session?.tenant !== tenant) return 'unknown'
    if (session.state === 'deleted') return 'deleted'
    const restarts = session.state === 'expired'
    if (restarts && this.tenants.limitOfSession(tenant, { isNew: false }) !== undefined) return 'limited'
    if (this.tenants.limitOfTurn(tenant, turnId) !== undefined) return 'limited'
    this.tenants.beginTurn(tenant, turnId, leaseMs)
    return this.takeUp(session, turnId, leaseMs)
  }

  takeUp(session: ModelSession, turnId: string, leaseMs: number): ModelSession['state'] {
    takeLease(session, { turnId, leaseMs }, this.nowMs)
    if (session.state === 'expired') session.forgetAtMs = Math.max(session.forgetAtMs, this.nowMs + leaseMs)
    return session.state
  }

  complete(
    key: SessionKey,
    tenant: TenantKey,
    turn: { readonly turnId: string; readonly pod: string; readonly usage: TokenTotals; readonly expiry: TurnExpiry },
  ): 'completed' | 'gone' {
    this.tenants.endTurn(tenant, turn.turnId)
    const session = this.look(key)
    if (session !== undefined && session.tenant !== tenant) return 'gone'
    const isHeld = session?.leases.has(turn.turnId) ?? false
    if (session === undefined || !(this.isLive(session) || (session.state === 'expired' && isHeld))) {
      session?.leases.delete(turn.turnId)
      this.removals.queueSession(key, undefined)
      return 'gone'
    }
    if (!isHeld) return 'completed'
    session.leases.delete(turn.turnId)
    const isRevived = session.state === 'expired'
    if (isRevived) this.#revive(session)
    session.state = 'active'
    session.retryDigest = undefined
    session.turns += 1
    session.tokens = {
      prompt: session.tokens.prompt + turn.usage.prompt,
      output: session.tokens.output + turn.usage.output,
      cached: session.tokens.cached + turn.usage.cached,
    }
    session.pod = turn.pod
    if (turn.expiry.kind === 'set') {
      session.ttlSeconds = turn.expiry.ttlSeconds
      session.expiresAtMs = turn.expiry.expiresAtMs
    } else if (turn.expiry.kind === 'slide' || isRevived) {
      session.expiresAtMs = this.nowMs + session.ttlSeconds * 1000
    }
    return 'completed'
  }

  abandon(key: SessionKey, tenant: TenantKey, turnId: string): void {
    this.tenants.endTurn(tenant, turnId)
    const session = this.look(key)
    session?.leases.delete(turnId)
    if (session === undefined || !this.isLive(session)) this.removals.queueSession(key, undefined)
    else if (session.state === 'creating' && this.isOver(session)) this.#discard(session)
  }

  setTtl(key: SessionKey, tenant: TenantKey, ttlSeconds: number): boolean {
    const session = this.live(key, tenant)
    if (session === undefined) return false
    session.ttlSeconds = ttlSeconds
    session.expiresAtMs = this.nowMs + ttlSeconds * 1000
    return true
  }

  remove(key: SessionKey, tenant: TenantKey): boolean {
    const session = this.look(key)
    const isReviving = session?.state === 'expired' && session.leases.size > 0
    if (session?.tenant !== tenant || !(this.isLive(session) || isReviving)) return false
    this.endWithTombstone(session, 'deleted')
    return true
  }

  announce(session: SessionKey, artefact: StoredKv, graceMs: number): void {
    this.removals.queueArtefact(session, artefact, this.nowMs + graceMs)
  }

  holdersOf(artefactId: string): readonly ModelSession[] {
    return [...this.sessions.values()].filter(({ kv }) => kv?.artefactId === artefactId)
  }

  /** Gives a session the KV of another one. */
  share({ key, kv }: ModelSession, session: ModelSession): void {
    session.kv = kv
    if (kv !== undefined && !this.#owners.has(kv.artefactId)) this.#owners.set(kv.artefactId, key)
  }

  /** Takes a session's KV from it. Returns what it had alone; what was shared has a removal of its own. */
  giveUp(session: ModelSession, dueMs: number): StoredKv | undefined {
    const { kv } = session
    session.kv = undefined
    if (kv === undefined || this.holdersOf(kv.artefactId).length > 0) return undefined
    const owner = this.#owners.get(kv.artefactId)
    // It may be committed again while its removal waits.
    this.#owners.delete(kv.artefactId)
    if (owner !== undefined) this.removals.queueArtefact(owner, kv, dueMs)
    return owner === undefined ? kv : undefined
  }

  /** The same of a session that lives on. */
  drop(session: ModelSession, dueMs: number): void {
    const gone = this.giveUp(session, dueMs)
    if (gone !== undefined) this.removals.queueArtefact(session.key, gone, dueMs)
  }

  /** Whether a commit could win, but for the room that it needs. `isLate`: its turn is of an earlier life. */
  mayCommit(key: SessionKey, kv: StoredKv, isLate: boolean): boolean {
    const session = this.live(key)
    if (session === undefined || isLate) return false
    return this.removals.isWaiting(kv.artefactId) && kv.turn >= ownTurnOf(session)
  }

  commit(key: SessionKey, kv: StoredKv, isLate: boolean): boolean {
    const session = this.live(key)
    if (session?.kv?.artefactId === kv.artefactId) {
      this.tenants.refusedBytes.delete(session.tenant)
      return true
    }
    // The removal of a session carries it already, or forks have it.
    if (this.removals.isCarried(kv.artefactId) || this.holdersOf(kv.artefactId).length > 0) return false
    if (session === undefined || !this.mayCommit(key, kv, isLate)) {
      this.removals.queueArtefact(key, kv, this.nowMs)
      return false
    }
    if (!this.tenants.fits(key, kv)) {
      this.tenants.refused(session, kv)
      this.removals.queueArtefact(key, kv, this.nowMs)
      session.kvStatus = 'tenant_full'
      return false
    }
    if (this.isTooMuch(key, kv)) {
      this.removals.queueArtefact(key, kv, this.nowMs)
      session.kvStatus = 'store_full'
      return false
    }
    this.removals.takeArtefact(kv.artefactId)
    this.drop(session, this.nowMs + this.#options.supersededGraceMs)
    session.kv = kv
    session.kvStatus = undefined
    this.tenants.refusedBytes.delete(session.tenant)
    return true
  }

  expireDue(): number {
    const over = [...this.sessions.values()].filter((session) => this.isOver(session))
    for (const { key } of over) this.look(key)
    return over.length
  }

  add(wanted: NewSession & Pick<ModelSession, 'isListed' | 'branches'>): void {
    const { key, tenant, sealedId, model, ttlSeconds, pod, isListed, branches } = wanted
    this.sessions.set(key, {
      key,
      tenant,
      sealedId,
      model,
      state: 'creating',
      createdAtMs: this.nowMs,
      expiresAtMs: this.nowMs + ttlSeconds * 1000,
      ttlSeconds,
      turns: 0,
      tokens: noTokens,
      pod,
      kv: undefined,
      kvStatus: undefined,
      leases: new Map([[wanted.turnId, this.nowMs + wanted.leaseMs]]),
      retryDigest: wanted.retryOf?.digest,
      forgetAtMs: Number.POSITIVE_INFINITY,
      isListed,
      branches,
    })
  }

  #revive(session: ModelSession): void {
    session.createdAtMs = this.nowMs
    session.turns = 0
    session.tokens = noTokens
    session.forgetAtMs = Number.POSITIVE_INFINITY
    this.removals.narrowSession(session.key)
  }

  endWithTombstone(session: ModelSession, state: 'expired' | 'deleted'): void {
    this.#endBranches(session, state)
    const gone = this.giveUp(session, this.nowMs)
    session.state = state
    session.kvStatus = undefined
    session.pod = undefined
    session.retryDigest = undefined
    session.branches = new Map()
    if (state === 'expired') session.leases.clear()
    session.forgetAtMs = this.nowMs + this.#options.tombstoneMs
    this.removals.queueSession(session.key, gone)
  }

  #endBranches({ key, tenant, branches }: ModelSession, state: 'expired' | 'deleted'): void {
    for (const number of branches.keys()) {
      const branch = number > 0 ? this.live(branchKeyOf(key, number), tenant) : undefined
      if (branch === undefined) continue
      if (branch.state === 'creating' && state === 'expired') this.#discard(branch)
      else this.endWithTombstone(branch, state)
    }
  }

  #discard(session: ModelSession): void {
    this.#endBranches(session, 'expired')
    this.sessions.delete(session.key)
    const { retryDigest } = session
    if (retryDigest !== undefined && this.retryKeys.get(retryDigest)?.session === session.key) {
      this.retryKeys.delete(retryDigest)
    }
    this.removals.queueSession(session.key, this.giveUp(session, this.nowMs))
  }
}
