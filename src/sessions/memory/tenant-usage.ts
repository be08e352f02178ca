import type { TenantLimits } from '../limits.ts'
import type { TenantKey } from '../session-record.ts'
import type { Limited } from '../session-store.ts'
import type { TurnLease } from './turn-leases.ts'

/** What tenants use of what they may have, but for their sessions. */
export class TenantUsage {
  /** Read at each use. */
  readonly #limits: () => TenantLimits
  /** Live sessions of a tenant; at `limit` some that have expired are ended first. */
  readonly #countSessions: (tenant: TenantKey, limit: number, nowMs: number) => number
  readonly #kvBytes = new Map<TenantKey, number>()
  /** Bytes of a tenant's last KV, if they did not fit. */
  readonly #refusedBytes = new Map<TenantKey, number>()
  /** Ends of the leases of turns. Empty while turns have no limit. */
  readonly #turns = new Map<TenantKey, Map<string, number>>()

  constructor(limits: () => TenantLimits, countSessions: (tenant: TenantKey, limit: number, nowMs: number) => number) {
    this.#limits = limits
    this.#countSessions = countSessions
  }

  /** Why the tenant may not have another session; undefined: it may. */
  refusalOfSession(tenant: TenantKey, nowMs: number): Limited | undefined {
    // First: it may end sessions, and their KV.
    const refusal = this.#refusalOfAnother(tenant, nowMs)
    const { maxStoredBytes } = this.#limits()
    const neededBytes = this.#bytesOf(tenant) + (this.#refusedBytes.get(tenant) ?? 0)
    const isFull = maxStoredBytes !== undefined && neededBytes > maxStoredBytes
    return refusal ?? (isFull ? noStorage : undefined)
  }

  /** Why the tenant may not have another session and begin its first turn; undefined: it may. */
  refusalOfNew(tenant: TenantKey, turnId: string, nowMs: number): Limited | undefined {
    return this.refusalOfSession(tenant, nowMs) ?? this.refusalOfTurn(tenant, turnId, nowMs)
  }

  /** As `refusalOfNew`, for a turn that starts an expired session anew. */
  refusalOfRestart(tenant: TenantKey, turnId: string, nowMs: number): Limited | undefined {
    return this.#refusalOfAnother(tenant, nowMs) ?? this.refusalOfTurn(tenant, turnId, nowMs)
  }

  /** Why the tenant may not begin a turn; undefined: it may. */
  refusalOfTurn(tenant: TenantKey, turnId: string, nowMs: number): Limited | undefined {
    const { maxTurns } = this.#limits()
    const turns = this.#turns.get(tenant)
    if (maxTurns === undefined || turns === undefined) return undefined
    for (const [other, untilMs] of turns) if (untilMs <= nowMs) turns.delete(other)
    return turns.size < maxTurns || turns.has(turnId) ? undefined : tooManyTurns
  }

  /** Counts a turn, while turns have a limit. */
  beginTurn(tenant: TenantKey, { turnId, untilMs }: TurnLease): void {
    if (this.#limits().maxTurns === undefined) return
    const turns = this.#turns.get(tenant) ?? new Map<string, number>()
    turns.set(turnId, Math.max(untilMs, turns.get(turnId) ?? 0))
    this.#turns.set(tenant, turns)
  }

  endTurn(tenant: TenantKey, turnId: string): void {
    const turns = this.#turns.get(tenant)
    if (turns?.delete(turnId) === true && turns.size === 0) this.#turns.delete(tenant)
  }

  /** Stored KV has grown, or shrunk where `bytes` is negative. */
  addKv(tenant: TenantKey, bytes: number): void {
    const sum = this.#bytesOf(tenant) + bytes
    if (sum > 0) this.#kvBytes.set(tenant, sum)
    else {
      this.#kvBytes.delete(tenant)
      this.#refusedBytes.delete(tenant)
    }
  }

  /** Whether the tenant may store so many bytes in place of others. */
  fits(tenant: TenantKey, bytes: number, replacedBytes: number): boolean {
    const { maxStoredBytes } = this.#limits()
    const isFitting = maxStoredBytes === undefined || this.#bytesOf(tenant) - replacedBytes + bytes <= maxStoredBytes
    // Of its own accord more than the limit says nothing of the room that is left.
    if (!isFitting && bytes <= maxStoredBytes) this.#refusedBytes.set(tenant, bytes)
    return isFitting
  }

  kvStored(tenant: TenantKey): void {
    this.#refusedBytes.delete(tenant)
  }

  #refusalOfAnother(tenant: TenantKey, nowMs: number): Limited | undefined {
    const { maxSessions } = this.#limits()
    const isFull = maxSessions !== undefined && this.#countSessions(tenant, maxSessions, nowMs) >= maxSessions
    return isFull ? tooManySessions : undefined
  }

  #bytesOf(tenant: TenantKey): number {
    return this.#kvBytes.get(tenant) ?? 0
  }
}

const tooManySessions: Limited = { kind: 'limited', limit: 'sessions' }
const noStorage: Limited = { kind: 'limited', limit: 'stored-bytes' }
const tooManyTurns: Limited = { kind: 'limited', limit: 'turns' }
