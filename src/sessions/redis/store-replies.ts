import { clampCount, type TenantLimit } from '../limits.ts'
import type { Removal } from '../removal-queue.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type { BeginOutcome, CreateOutcome, ForkOutcome, TurnExpiry, WholeSession } from '../session-store.ts'
import { readAll, type ScriptReply } from './session-script-runner.ts'
import { readTombstone, toRecord, unescapeLine } from './session-text.ts'

export const readRemoval = (claimed: unknown, claim: string): Removal => {
  const [id, attempt, session, payload] = readAll(claimed, (item) => item)
  return {
    id: String(id),
    session: String(session) as SessionKey,
    kind: String(id).startsWith('s:') ? 'session' : 'artefact',
    payload: typeof payload === 'string' ? unescapeLine(payload) : undefined,
    attempt: Number(attempt),
    claim,
  }
}

export const toCreateOutcome = (reply: ScriptReply, tenant: TenantKey): CreateOutcome => {
  const { outcome, detail } = reply
  if (outcome === 'key-reused') return { kind: 'key-reused' }
  if (outcome === 'limited') return { kind: 'limited', limit: toLimit(detail) }
  return { kind: outcome === 'created' ? 'created' : 'existing', record: toRecord(detail, tenant) }
}

export const toForkOutcome = ({ outcome, detail }: ScriptReply, tenant: TenantKey): ForkOutcome => {
  if (outcome === 'forked') return { kind: 'forked', record: toRecord(detail, tenant) }
  return outcome === 'limited' ? { kind: 'limited', limit: toLimit(detail) } : { kind: 'unknown' }
}

const toLimit = (detail: unknown): TenantLimit =>
  detail === 'sessions' || detail === 'stored-bytes' ? detail : 'turns'

export const toBeginOutcome = (reply: ScriptReply, tenant: TenantKey): BeginOutcome => {
  const { outcome, nowMs } = reply
  if (outcome === 'active') return { kind: 'active', record: toRecord(reply.detail, tenant), nowMs }
  if (outcome === 'expired') return { kind: 'expired', ...readTombstone(reply.detail), cause: 'time', nowMs }
  if (outcome === 'limited') return { kind: 'limited', limit: toLimit(reply.detail) }
  return { kind: outcome === 'deleted' ? 'deleted' : 'unknown' }
}

export const toWholeSession = (snapshot: unknown, tenant: TenantKey): WholeSession => {
  const branches = Array.isArray(snapshot) ? snapshot[3] : undefined
  return { ...toRecord(snapshot, tenant), branches: readAll(branches, (branch) => toRecord(branch, tenant)) }
}

export const expiryArgs = (expiry: TurnExpiry): readonly (string | number)[] =>
  expiry.kind === 'set' ? ['set', clampCount(expiry.ttlSeconds), clampCount(expiry.expiresAtMs)] : [expiry.kind, '', '']
