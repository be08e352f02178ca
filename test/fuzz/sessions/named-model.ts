import { maxBranches } from '../../../src/sessions/limits.ts'
import { branchKeyOf, type SessionKey } from '../../../src/sessions/session-record.ts'
import type { BeginNamedTurn } from '../../../src/sessions/session-store.ts'
import { type ModelSession, takeLease } from './model-session.ts'
import type { SessionModel } from './session-model.ts'

interface BegunNamed {
  readonly kind: 'created' | 'active' | 'expired' | 'deleted' | 'unknown' | 'limited'
  readonly key: SessionKey
}

/** What a store must do with a turn of the session that a name chooses. `sharedId`: KV that it gave, where several were used at a time. */
export const beginNamed = (model: SessionModel, turn: BeginNamedTurn, sharedId: string | undefined): BegunNamed => {
  const { key, tenant, turnId, leaseMs } = turn
  const session = model.look(key)
  if (session !== undefined && session.tenant !== tenant) return { kind: 'unknown', key }
  const isLive = session !== undefined && model.isLive(session)
  const earlier = turn.earlier && !isLive ? model.live(turn.earlier.key, turn.earlier.tenant) : undefined
  if (earlier !== undefined) {
    const { sealedId } = earlier
    const own = { ...turn, key: earlier.key, tenant: earlier.tenant, sealedId, earlier: undefined }
    return beginNamed(model, own, sharedId)
  }
  if (model.tenants.limitOfTurn(tenant, turnId) !== undefined) return { kind: 'limited', key }
  const begun = beginOwn(model, turn, sharedId)
  if (/created|active|expired/.test(begun.kind)) model.tenants.beginTurn(tenant, turnId, leaseMs)
  return begun
}

/** The branches beside the first, as anyone sees them. */
export const expectedBranchesOf = (model: SessionModel, session: ModelSession | undefined): readonly SessionKey[] => {
  const numbers = [...(session?.branches.keys() ?? [])].toSorted((a, b) => a - b)
  return numbers.flatMap((number) => {
    const branch = session && number > 0 ? model.live(branchKeyOf(session.key, number), session.tenant) : undefined
    return branch === undefined ? [] : [branch.key]
  })
}

const beginOwn = (model: SessionModel, turn: BeginNamedTurn, sharedId: string | undefined): BegunNamed => {
  const { key, tenant, turnId, leaseMs } = turn
  const session = model.look(key)
  if (session !== undefined && model.isLive(session)) return beginBranch(model, session, { turn, sharedId })
  if (session?.state === 'deleted' && !isRemoved(model, key)) return { kind: 'deleted', key }
  if (model.tenants.limitOfSession(tenant, { isNew: true }) !== undefined) return { kind: 'limited', key }
  const branches = new Map([[0, { usedMs: model.nowMs, mark: turn.marks.at(-1) ?? '' }]])
  if (session?.state === 'expired') {
    session.branches = branches
    model.takeUp(session, turnId, leaseMs)
    return { kind: 'expired', key }
  }
  model.removals.narrowSession(key)
  model.add({ ...turn, pod: undefined, retryOf: undefined, isListed: true, branches })
  return { kind: 'created', key }
}

const beginBranch = (
  model: SessionModel,
  session: ModelSession,
  { turn, sharedId }: { readonly turn: BeginNamedTurn; readonly sharedId: string | undefined },
): BegunNamed => {
  const known = continued(session, turn.marks)
  const number = known ?? freeBranch(model, session)
  if (number === undefined) return { kind: 'unknown', key: session.key }
  const source = known === undefined && turn.forksBranch === true ? forkedBranch(model, session, sharedId) : undefined
  session.branches.set(number, { usedMs: model.nowMs, mark: turn.marks.at(-1) ?? '' })
  const key = branchKeyOf(session.key, number)
  const { ttlSeconds } = session
  if (number > 0) session.expiresAtMs = Math.max(session.expiresAtMs, model.nowMs + ttlSeconds * 1000)
  const branch = model.live(key)
  if (branch !== undefined) {
    if (branch.tenant !== session.tenant) return { kind: 'unknown', key }
    branch.ttlSeconds = ttlSeconds
    if (source !== undefined) model.share(source, branch)
    takeLease(branch, turn, model.nowMs)
    return { kind: 'active', key }
  }
  model.removals.narrowSession(key)
  const wanted = { ...turn, key, ttlSeconds, pod: undefined, retryOf: undefined }
  model.add({ ...wanted, isListed: false, branches: new Map() })
  const added = model.sessions.get(key)
  if (added !== undefined && source !== undefined) model.share(source, added)
  return { kind: 'created', key }
}

/** The most recently used branch that has stored KV. */
const forkedBranch = (model: SessionModel, { key, tenant, branches }: ModelSession, sharedId: string | undefined) => {
  const stored = [...branches].flatMap(([number, { usedMs }]) => {
    const branch = model.live(branchKeyOf(key, number), tenant)
    return branch?.kv === undefined ? [] : [{ branch, usedMs }]
  })
  const latestMs = Math.max(...stored.map(({ usedMs }) => usedMs))
  const latest = stored.filter(({ usedMs }) => usedMs === latestMs)
  return (latest.find(({ branch }) => branch.kv?.artefactId === sharedId) ?? latest[0])?.branch
}

const continued = ({ branches }: ModelSession, marks: readonly string[]): number | undefined => {
  const places = [...branches].map(([number, { mark }]) => ({ number, place: marks.lastIndexOf(mark) }))
  const found = places.filter(({ place }) => place >= 0)
  return found.toSorted((a, b) => b.place - a.place || a.number - b.number)[0]?.number
}

const freeBranch = (model: SessionModel, { key, branches }: ModelSession): number | undefined => {
  const all = Array.from({ length: maxBranches }, (_, number) => number)
  const isHeld = (number: number): boolean => {
    const branch = model.live(branchKeyOf(key, number))
    return branch !== undefined && model.isHeld(branch)
  }
  const usedMs = (number: number): number => branches.get(number)?.usedMs ?? 0
  const unused = all.find((number) => !branches.has(number))
  const free = unused ?? all.filter((number) => !isHeld(number)).toSorted((a, b) => usedMs(a) - usedMs(b))[0]
  const branch = free === undefined ? undefined : model.live(branchKeyOf(key, free))
  if (branch !== undefined) {
    model.drop(branch, model.nowMs)
    branch.kvStatus = undefined
  }
  return free
}

const isRemoved = (model: SessionModel, key: SessionKey): boolean =>
  Array.from({ length: maxBranches }, (_, number) => branchKeyOf(key, number)).every((each) => {
    const session = model.look(each)
    const isHeld = session?.state === 'deleted' && model.isHeld(session)
    return !isHeld && !model.removals.namesSession(each)
  })
