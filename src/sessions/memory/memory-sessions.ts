import { clampCount, kvStoreFullStatus, kvTenantFullStatus, maxBranches } from '../limits.ts'
import { branchKeyOf, type SessionKey, type TenantKey } from '../session-record.ts'
import type {
  BeginNamedOutcome,
  BeginNamedTurn,
  BeginOutcome,
  BeginTurn,
  CompleteOutcome,
  CompleteTurn,
  CreateOutcome,
  NewSession,
  SessionStore,
  WholeSession,
} from '../session-store.ts'
import type { MemoryDirectory } from './memory-directory.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type Branch, type MemorySession, type Tombstone, toRecord } from './memory-session.ts'
import { noBranches, type SessionTable } from './session-table.ts'
import { heldUntilMs, holdsLease, leaseOf, releaseLease, type TurnLease, takeLease } from './turn-leases.ts'

/** Applies creates, turns and management to the sessions of a table. Synchronous, so every method is atomic. */
export class MemorySessions {
  readonly #table: SessionTable
  readonly #directory: MemoryDirectory
  readonly #removals: MemoryRemovals
  readonly #supersededGraceMs: number

  constructor(options: {
    readonly table: SessionTable
    readonly directory: MemoryDirectory
    readonly removals: MemoryRemovals
    readonly supersededGraceMs: number
  }) {
    this.#table = options.table
    this.#directory = options.directory
    this.#removals = options.removals
    this.#supersededGraceMs = options.supersededGraceMs
  }

  create(wanted: NewSession, nowMs: number): CreateOutcome {
    const { key, tenant, retryOf } = wanted
    const known = retryOf && this.#table.retryKeys.find(retryOf.digest, nowMs)
    const mayFind = retryOf !== undefined && retryOf.use !== 'record-only'
    if (mayFind && known !== undefined && known.bodyDigest !== retryOf.bodyDigest) return { kind: 'key-reused' }
    // Looked up only now: it may end the session, and its key is forgotten with it.
    const named = known?.session && this.#findOwned(known.session, tenant, nowMs)
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
      this.#take(session, lease, nowMs)
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

  beginNamed(turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
    const { usage } = this.#table
    const { key, tenant, turnId, earlier } = turn
    const present = this.#table.findLive(key, nowMs) ?? this.#table.findTombstone(key, nowMs)
    if (present !== undefined && present.tenant !== tenant) return unknown
    const old =
      earlier && this.#table.findLive(key, nowMs) === undefined && this.#findOwned(earlier.key, earlier.tenant, nowMs)
    if (old) return this.beginNamed({ ...turn, ...earlier, sealedId: old.sealedId, earlier: undefined }, nowMs)
    const outcome = usage.refusalOfTurn(tenant, turnId, nowMs) ?? this.#beginOwnNamed(turn, nowMs)
    if ('record' in outcome || outcome.kind === 'expired') usage.beginTurn(tenant, leaseOf(turn, nowMs))
    return outcome
  }

  #beginOwnNamed(turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
    const { key, tenant, maxNamedSessions } = turn
    const session = this.#table.findLive(key, nowMs)
    if (session !== undefined) return this.#beginBranch(session, turn, nowMs)
    const tombstone = this.#table.findTombstone(key, nowMs)
    if (tombstone?.kind === 'deleted' && !this.#isRemoved(key, nowMs)) return { kind: 'deleted' }
    if (!this.#table.makeRoomForNamed(tenant, maxNamedSessions, nowMs)) return unknown
    const refusal = this.#table.usage.refusalOfNew(tenant, turn.turnId, nowMs)
    if (refusal !== undefined) return refusal
    const branches = [branchOf(turn, nowMs)]
    if (tombstone?.kind === 'expired') {
      tombstone.branches = branches
      return beginExpired(tombstone, leaseOf(turn, nowMs), nowMs)
    }
    return this.#createNamed({ ...turn, by: 'name', branches }, nowMs)
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
    const session = this.#findOwned(key, tenant, nowMs)
    return session && this.#directory.whole(session, nowMs)
  }

  setTtl(key: SessionKey, tenant: TenantKey, ttlSeconds: number, nowMs: number): WholeSession | undefined {
    const session = this.#findOwned(key, tenant, nowMs)
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

  commitKv({ key, createdAtMs, kv }: Parameters<SessionStore['commitKv']>[0], nowMs: number): boolean {
    const session = this.#table.findLive(key, nowMs)
    const present = session?.kv
    if (session !== undefined && present?.artefactId === kv.artefactId) {
      this.#table.setKv(session, kv, nowMs)
      return true
    }
    const isForward = session?.createdAtMs === createdAtMs && kv.turn >= (present?.turn ?? 0)
    const mayCommit = isForward && this.#removals.canCommit(kv.artefactId)
    const fits = mayCommit && this.#table.usage.fits(session.tenant, kv.bytes, present?.bytes ?? 0)
    if (!fits || !this.#table.hasRoomFor(session, kv, nowMs)) {
      this.#removals.queueArtefact(key, kv, nowMs)
      if (mayCommit) session.kvStatus = fits ? kvStoreFullStatus : kvTenantFullStatus
      return false
    }
    this.#removals.commit(kv.artefactId)
    session.kvStatus = undefined
    this.#table.setKv(session, kv, nowMs)
    if (present !== undefined) this.#removals.queueArtefact(key, present, nowMs + this.#supersededGraceMs)
    return true
  }

  setKvStatus({ key, status }: { readonly key: SessionKey; readonly status: string }, nowMs: number): void {
    const session = this.#table.findLive(key, nowMs)
    if (session !== undefined) session.kvStatus = status
  }

  dropKv(artefactId: string, reason: string, nowMs: number): boolean {
    const owner = this.#table.ownerOf(artefactId)
    const session = owner && this.#table.findLive(owner, nowMs)
    if (session === undefined) return false
    this.#table.dropKv(session, reason, nowMs)
    return true
  }

  /** An expired session that a turn may still revive. */
  #findReviving(key: SessionKey, nowMs: number): Tombstone | undefined {
    const tombstone = this.#table.findTombstone(key, nowMs)
    return tombstone?.kind === 'expired' && tombstone.leases.length > 0 ? tombstone : undefined
  }

  #beginBranch(session: MemorySession, turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
    const number = this.#continued(session, turn.marks) ?? this.#freeBranch(session, nowMs)
    if (number === undefined) return unknown
    session.branches = session.branches.toSpliced(number, 1, branchOf(turn, nowMs))
    const { ttlSeconds } = session
    const key = branchKeyOf(session.key, number)
    if (number > 0) {
      session.expiresAtMs = Math.max(session.expiresAtMs, nowMs + ttlSeconds * 1000)
      this.#table.reschedule(session)
      this.#table.touch(session, nowMs)
    }
    const branch = this.#table.findLive(key, nowMs)
    if (branch === undefined) {
      const wanted = { ...turn, key, ttlSeconds, by: 'prompt', branches: noBranches } as const
      return this.#createNamed(wanted, nowMs)
    }
    if (branch.tenant !== session.tenant) return unknown
    branch.ttlSeconds = ttlSeconds
    this.#take(branch, leaseOf(turn, nowMs), nowMs)
    return { kind: 'active', record: toRecord(branch), nowMs }
  }

  #createNamed(wanted: BeginNamedTurn & Pick<MemorySession, 'by' | 'branches'>, nowMs: number): BeginNamedOutcome {
    const { key, tenant, sealedId, model, ttlSeconds, by, branches } = wanted
    this.#removals.narrowSession(key, nowMs)
    const first = { state: 'creating', pod: undefined, retryDigest: undefined } as const
    const times = { expiresAtMs: nowMs + ttlSeconds * 1000, leases: [leaseOf(wanted, nowMs)] }
    const session = { key, tenant, sealedId, model, ttlSeconds, by, branches, ...first, ...times }
    return { kind: 'created', record: toRecord(this.#table.add(session, nowMs)), nowMs }
  }

  /** The branch whose prompt the marks continue, the longest first. */
  #continued({ branches }: MemorySession, marks: readonly string[]): number | undefined {
    const places = branches.map((branch) => (branch === undefined ? -1 : marks.lastIndexOf(branch.mark)))
    const longest = Math.max(-1, ...places)
    return longest < 0 ? undefined : places.indexOf(longest)
  }

  /** Makes room for another prompt: in the branch that was used longest ago and that no turn holds. */
  #freeBranch(session: MemorySession, nowMs: number): number | undefined {
    const all = Array.from({ length: maxBranches }, (_, number) => number)
    const usedMs = (number: number): number | undefined => session.branches[number]?.usedMs
    const find = (number: number) => this.#table.findLive(branchKeyOf(session.key, number), nowMs)
    const isFree = (number: number): boolean => heldUntilMs(find(number)?.leases ?? []) <= nowMs
    const unused = all.find((number) => usedMs(number) === undefined)
    const free = unused ?? all.filter(isFree).toSorted((a, b) => (usedMs(a) ?? 0) - (usedMs(b) ?? 0))[0]
    const live = free === undefined ? undefined : find(free)
    if (live !== undefined) {
      this.#table.dropKv(live, '', nowMs)
      live.kvStatus = undefined
    }
    return free
  }

  /** Whether nothing is left of a deleted session: no turn, no KV. */
  #isRemoved(key: SessionKey, nowMs: number): boolean {
    return Array.from({ length: maxBranches }, (_, number) => branchKeyOf(key, number)).every((each) => {
      // Ends one whose first turn was lost.
      this.#table.findLive(each, nowMs)
      const tombstone = this.#table.findTombstone(each, nowMs)
      const isHeld = tombstone?.kind === 'deleted' && heldUntilMs(tombstone.leases) > nowMs
      return !isHeld && !this.#removals.namesSession(each)
    })
  }

  #findOwned(key: SessionKey, tenant: TenantKey, nowMs: number): MemorySession | undefined {
    const session = this.#table.findLive(key, nowMs)
    return session?.tenant === tenant ? session : undefined
  }

  #join(session: MemorySession, wanted: NewSession, nowMs: number): CreateOutcome {
    const lease = leaseOf(wanted, nowMs)
    const { usage } = this.#table
    const refusal = usage.refusalOfTurn(session.tenant, lease.turnId, nowMs)
    if (refusal !== undefined) return refusal
    usage.beginTurn(session.tenant, lease)
    this.#take(session, lease, nowMs)
    return { kind: 'existing', record: toRecord(session) }
  }

  #take(session: MemorySession, lease: { readonly turnId: string; readonly untilMs: number }, nowMs: number): void {
    session.leases = takeLease(session.leases, lease, nowMs)
    this.#table.touch(session, nowMs)
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

const unknown: BeginOutcome = { kind: 'unknown' }

const branchOf = ({ marks }: BeginNamedTurn, nowMs: number): Branch => ({ usedMs: nowMs, mark: marks.at(-1) ?? '' })

const beginExpired = (tombstone: Tombstone, lease: TurnLease, nowMs: number): BeginOutcome => {
  tombstone.leases = takeLease(tombstone.leases, lease, nowMs)
  tombstone.forgetAtMs = Math.max(tombstone.forgetAtMs, lease.untilMs)
  const { ttlSeconds, model, cause } = tombstone
  return { kind: 'expired', ttlSeconds, model, cause, nowMs }
}
