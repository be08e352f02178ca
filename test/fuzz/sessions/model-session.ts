import { type KvLimit, maxLeases, type TenantLimits } from '../../../src/sessions/limits.ts'
import type { SessionKey, StoredKv, TenantKey, TokenTotals } from '../../../src/sessions/session-record.ts'

export interface ModelSession {
  readonly key: SessionKey
  readonly tenant: TenantKey
  readonly sealedId: string
  readonly model: string
  state: 'creating' | 'active' | 'expired' | 'deleted'
  createdAtMs: number
  expiresAtMs: number
  ttlSeconds: number
  turns: number
  tokens: TokenTotals
  pod: string | undefined
  kv: StoredKv | undefined
  kvStatus: string | undefined
  readonly leases: Map<string, number>
  retryDigest: string | undefined
  forgetAtMs: number
  /** Branches beside the first are in no list. */
  readonly isListed: boolean
  /** By number: when the prompt was last begun, and its last mark. */
  branches: Map<number, { readonly usedMs: number; readonly mark: string }>
}

export interface ModelOptions {
  readonly tombstoneMs: number
  readonly supersededGraceMs: number
  readonly kvLimit: KvLimit
  readonly tenantLimits: TenantLimits
}

/** Adds a lease, or keeps its later end. */
export const takeLease = (
  { leases }: ModelSession,
  { turnId, leaseMs }: { readonly turnId: string; readonly leaseMs: number },
  nowMs: number,
): void => {
  const earlierMs = leases.get(turnId) ?? 0
  for (const [other, untilMs] of leases) {
    if (untilMs <= nowMs) leases.delete(other)
  }
  leases.delete(turnId)
  const [endsFirst] = [...leases].sort(([, a], [, b]) => a - b)
  if (endsFirst !== undefined && leases.size >= maxLeases) leases.delete(endsFirst[0])
  leases.set(turnId, Math.max(earlierMs, nowMs + leaseMs))
}

/** KV of several sessions counts once. */
export const kvBytesOf = (sessions: readonly ModelSession[]): number => {
  const bytes = new Map(sessions.flatMap(({ kv }) => (kv === undefined ? [] : [[kv.artefactId, kv.bytes]])))
  return [...bytes.values()].reduce((sum, each) => sum + each, 0)
}

/** The turn that left a session's KV; 0 for what was shared with it. */
export const ownTurnOf = ({ key, kv }: ModelSession): number =>
  kv?.artefactId.startsWith(key.slice(0, 22)) === true ? kv.turn : 0
