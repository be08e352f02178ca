import type { UnsettledSalt } from './chunk-ledger.ts'

/** Open turns by salt, and the salts that they left unsettled. Nothing stays of a salt without either. */
export class SaltTurns {
  /** By salt and turn: when the lease runs out, milliseconds. */
  readonly #open = new Map<string, Map<string, number>>()
  readonly #unsettled = new Map<string, { readonly mark: string; readonly sinceMs: number }>()
  #marks = 0

  /** How many turns are open and salts unsettled. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, turns) => sum + turns.size, this.#unsettled.size)
  }

  open(salt: string, turnId: string, leaseMs: number, nowMs: number): void {
    this.#expire(salt, nowMs)
    const turns = this.#open.get(salt) ?? new Map<string, number>()
    this.#open.set(salt, turns.set(turnId, nowMs + leaseMs))
  }

  /** Ends a turn that named all it left. */
  close(salt: string, turnId: string, nowMs: number): void {
    this.#expire(salt, nowMs)
    this.#drop(salt, turnId)
  }

  unsettle(salt: string, sinceMs: number): void {
    this.#marks += 1
    const earlier = this.#unsettled.get(salt)?.sinceMs ?? sinceMs
    this.#unsettled.set(salt, { mark: String(this.#marks), sinceMs: Math.min(earlier, sinceMs) })
  }

  /** Oldest first. */
  list(limit: number, nowMs: number): readonly UnsettledSalt[] {
    for (const salt of this.#open.keys()) this.#expire(salt, nowMs)
    return [...this.#unsettled]
      .sort(([, a], [, b]) => a.sinceMs - b.sinceMs)
      .slice(0, limit)
      .map(([salt, { mark, sinceMs }]) => ({ salt, mark, ageMs: Math.max(0, nowMs - sinceMs) }))
  }

  swept(salt: string, mark: string, nowMs: number): void {
    this.#expire(salt, nowMs)
    if (this.#unsettled.get(salt)?.mark === mark) this.#unsettled.delete(salt)
  }

  #expire(salt: string, nowMs: number): void {
    for (const [turnId, untilMs] of this.#open.get(salt) ?? []) {
      if (untilMs > nowMs) continue
      this.#drop(salt, turnId)
      this.unsettle(salt, untilMs)
    }
  }

  #drop(salt: string, turnId: string): void {
    const turns = this.#open.get(salt)
    turns?.delete(turnId)
    if (turns?.size === 0) this.#open.delete(salt)
  }
}
