import type { TenantLimit, TenantLimits } from '../../../src/sessions/limits.ts'
import type { SessionKey, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'
import { kvBytesOf, type ModelSession } from './model-session.ts'

/** The model that the tenants belong to. */
interface Sessions {
  readonly nowMs: number
  readonly sessions: ReadonlyMap<string, ModelSession>
  isLive(session: ModelSession): boolean
  expireDue(): number
}

const noLimit = Number.POSITIVE_INFINITY

/** What tenants may have at a time. */
export class TenantModel {
  readonly #model: Sessions
  readonly #limits: Required<{ [Name in keyof TenantLimits]: number }>
  /** Ends of the leases of turns, by tenant and turn. */
  readonly #turns = new Map<string, number>()
  /** Bytes of a tenant's last KV, if they did not fit. */
  readonly refusedBytes = new Map<TenantKey, number>()

  constructor(model: Sessions, { maxSessions, maxStoredBytes, maxTurns }: TenantLimits) {
    this.#model = model
    this.#limits = {
      maxSessions: maxSessions ?? noLimit,
      maxStoredBytes: maxStoredBytes ?? noLimit,
      maxTurns: maxTurns ?? noLimit,
    }
  }

  limitOfTurn(tenant: TenantKey, turnId: string): TenantLimit | undefined {
    const counted = [...this.#turns].filter(([name, untilMs]) => name.startsWith(tenant) && untilMs > this.#model.nowMs)
    const isKnown = counted.some(([name]) => name === tenant + turnId)
    return isKnown || counted.length < this.#limits.maxTurns ? undefined : 'turns'
  }

  beginTurn(tenant: TenantKey, turnId: string, leaseMs: number): void {
    const untilMs = this.#model.nowMs + leaseMs
    this.#turns.set(tenant + turnId, Math.max(untilMs, this.#turns.get(tenant + turnId) ?? 0))
  }

  endTurn(tenant: TenantKey, turnId: string): void {
    this.#turns.delete(tenant + turnId)
  }

  /** Not new: an expired session would start anew. */
  limitOfSession(tenant: TenantKey, { isNew }: { readonly isNew: boolean }): TenantLimit | undefined {
    const { maxSessions, maxStoredBytes } = this.#limits
    const count = (): number =>
      this.#of(tenant).filter((session) => session.isListed && this.#model.isLive(session)).length
    if (count() >= maxSessions) this.#model.expireDue()
    if (count() >= maxSessions) return 'sessions'
    const neededBytes = kvBytesOf(this.#of(tenant)) + (this.refusedBytes.get(tenant) ?? 0)
    return isNew && neededBytes > maxStoredBytes ? 'stored-bytes' : undefined
  }

  /** Whether KV fits in place of what the session has stored. */
  fits(key: SessionKey, { bytes }: StoredKv): boolean {
    const { tenant } = this.#model.sessions.get(key) ?? {}
    const others = tenant === undefined ? [] : this.#of(tenant).filter((each) => each.key !== key)
    return kvBytesOf(others) + bytes <= this.#limits.maxStoredBytes
  }

  refused({ tenant }: ModelSession, { bytes }: StoredKv): void {
    if (bytes <= this.#limits.maxStoredBytes) this.refusedBytes.set(tenant, bytes)
  }

  #of(tenant: TenantKey): readonly ModelSession[] {
    return [...this.#model.sessions.values()].filter((session) => session.tenant === tenant)
  }
}
