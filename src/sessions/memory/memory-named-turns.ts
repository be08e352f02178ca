import { maxBranches } from '../limits.ts'
import { branchKeyOf, type SessionKey } from '../session-record.ts'
import type { BeginNamedOutcome, BeginNamedTurn, BeginOutcome } from '../session-store.ts'
import { beginExpired } from './begin-expired.ts'
import type { MemoryRemovals } from './memory-removals.ts'
import { type Branch, type MemorySession, toRecord } from './memory-session.ts'
import type { MemoryStoredKv } from './memory-stored-kv.ts'
import { noBranches, type SessionTable } from './session-table.ts'
import { heldUntilMs, leaseOf } from './turn-leases.ts'

type NewNamed = BeginNamedTurn & Pick<MemorySession, 'by' | 'branches'>

/** Begins turns of sessions that clients' names choose, and of their branches. */
export class MemoryNamedTurns {
  readonly #table: SessionTable
  readonly #storedKv: MemoryStoredKv
  readonly #removals: MemoryRemovals

  constructor(options: {
    readonly table: SessionTable
    readonly storedKv: MemoryStoredKv
    readonly removals: MemoryRemovals
  }) {
    this.#table = options.table
    this.#storedKv = options.storedKv
    this.#removals = options.removals
  }

  begin(turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
    const { usage } = this.#table
    const { key, tenant, turnId, earlier } = turn
    const present = this.#table.findLive(key, nowMs) ?? this.#table.findTombstone(key, nowMs)
    if (present !== undefined && present.tenant !== tenant) return unknown
    const old =
      earlier &&
      this.#table.findLive(key, nowMs) === undefined &&
      this.#table.findOwned(earlier.key, earlier.tenant, nowMs)
    if (old) return this.begin({ ...turn, ...earlier, sealedId: old.sealedId, earlier: undefined }, nowMs)
    const outcome = usage.refusalOfTurn(tenant, turnId, nowMs) ?? this.#beginOwn(turn, nowMs)
    if ('record' in outcome || outcome.kind === 'expired') usage.beginTurn(tenant, leaseOf(turn, nowMs))
    return outcome
  }

  #beginOwn(turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
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
    return this.#create({ ...turn, by: 'name', branches }, undefined, nowMs)
  }

  #beginBranch(session: MemorySession, turn: BeginNamedTurn, nowMs: number): BeginNamedOutcome {
    const continued = this.#continued(session, turn.marks)
    const number = continued ?? this.#freeBranch(session, nowMs)
    if (number === undefined) return unknown
    const forks = continued === undefined && turn.forksBranch === true
    const source = forks ? this.#forkedBranch(session, nowMs) : undefined
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
      return this.#create({ ...turn, key, ttlSeconds, by: 'prompt', branches: noBranches }, source, nowMs)
    }
    if (branch.tenant !== session.tenant) return unknown
    branch.ttlSeconds = ttlSeconds
    if (source !== undefined) this.#storedKv.share(source, branch, nowMs)
    this.#table.take(branch, leaseOf(turn, nowMs), nowMs)
    return { kind: 'active', record: toRecord(branch), nowMs }
  }

  #create(wanted: NewNamed, source: MemorySession | undefined, nowMs: number): BeginNamedOutcome {
    const { key, tenant, sealedId, model, ttlSeconds, by, branches } = wanted
    this.#removals.narrowSession(key, nowMs)
    const first = { state: 'creating', pod: undefined, retryDigest: undefined } as const
    const times = { expiresAtMs: nowMs + ttlSeconds * 1000, leases: [leaseOf(wanted, nowMs)] }
    const session = { key, tenant, sealedId, model, ttlSeconds, by, branches, ...first, ...times }
    const added = this.#table.add(session, nowMs)
    if (source !== undefined) this.#storedKv.share(source, added, nowMs)
    return { kind: 'created', record: toRecord(added), nowMs }
  }

  /** The branch whose prompt the marks continue, the longest first. */
  #continued({ branches }: MemorySession, marks: readonly string[]): number | undefined {
    const places = branches.map((branch) => (branch === undefined ? -1 : marks.lastIndexOf(branch.mark)))
    const longest = Math.max(-1, ...places)
    return longest < 0 ? undefined : places.indexOf(longest)
  }

  /** The most recently used branch that has stored KV. */
  #forkedBranch(session: MemorySession, nowMs: number): MemorySession | undefined {
    const usedMs = ({ key }: MemorySession): number =>
      session.branches.find((_, number) => branchKeyOf(session.key, number) === key)?.usedMs ?? 0
    const all = [session, ...this.#table.branchesOf(session.key, session, nowMs)]
    const stored = all.filter(({ heldKv }) => heldKv !== undefined)
    return stored.toSorted((a, b) => usedMs(b) - usedMs(a))[0]
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
      this.#storedKv.giveUp(live, nowMs)
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
}

const unknown: BeginOutcome = { kind: 'unknown' }

const branchOf = ({ marks }: BeginNamedTurn, nowMs: number): Branch => ({ usedMs: nowMs, mark: marks.at(-1) ?? '' })
