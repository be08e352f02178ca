import type { SessionKey } from '../session-record.ts'
import { LinkedTable } from './linked-table.ts'
import { tombstoneBytes } from './session-bytes.ts'
import type { Tombstone } from './tombstone.ts'
import { heldUntilMs } from './turn-leases.ts'

/** What is remembered of sessions that have ended: the oldest go when there are too many. */
export class Tombstones {
  readonly #tombstones = new LinkedTable<SessionKey, Tombstone>()
  readonly #options: { readonly maxCount: number }
  #bytes = 0

  constructor(options: { readonly maxCount: number }) {
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  find(key: SessionKey, nowMs: number): Tombstone | undefined {
    const tombstone = this.#tombstones.get(key)
    if (tombstone === undefined || tombstone.forgetAtMs > nowMs) return tombstone
    this.delete(key)
    return undefined
  }

  add(key: SessionKey, tombstone: Tombstone, nowMs: number): void {
    this.delete(key)
    this.#tombstones.set(key, tombstone)
    this.#bytes += tombstoneBytes(tombstone)
    for (let oldest = this.#tombstones.oldest(); oldest !== undefined; oldest = this.#tombstones.oldest()) {
      if (oldest.value.forgetAtMs > nowMs && this.#tombstones.size <= this.#options.maxCount) break
      this.delete(oldest.key)
    }
  }

  delete(key: SessionKey): void {
    const tombstone = this.#tombstones.get(key)
    if (tombstone === undefined) return
    this.#bytes -= tombstoneBytes(tombstone)
    this.#tombstones.delete(key)
  }

  /** Forgets the oldest one, unless a turn is about to start its session anew: that one counts as new then. `false`: there was nothing to forget. */
  forgetOldest(nowMs: number): boolean {
    const oldest = this.#tombstones.oldest()
    if (oldest === undefined) return false
    const { key, value } = oldest
    if (value.kind === 'expired' && heldUntilMs(value.leases) > nowMs) {
      this.#tombstones.touch(key)
      return false
    }
    this.delete(key)
    return true
  }
}
