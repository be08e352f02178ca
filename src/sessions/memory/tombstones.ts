import { LRUCache } from 'lru-cache'
import { atMostEntries } from '../../async/at-most-entries.ts'
import type { SessionKey } from '../session-record.ts'
import { bytesOfTombstone, type Tombstone } from './memory-session.ts'
import { heldUntilMs } from './turn-leases.ts'

/** What stays of sessions that have ended, the oldest first. */
export class Tombstones {
  readonly #tombstones: LRUCache<SessionKey, Tombstone>
  readonly #keptMs: number
  #bytes = 0

  /** `maxSessions` also limits the tombstones. */
  constructor(options: { readonly maxSessions: number; readonly tombstoneSeconds: number }) {
    this.#keptMs = options.tombstoneSeconds * 1000
    this.#tombstones = new LRUCache({
      ...atMostEntries(options.maxSessions),
      dispose: (tombstone) => {
        this.#bytes -= bytesOfTombstone(tombstone)
      },
    })
  }

  get bytes(): number {
    return this.#bytes
  }

  find(key: SessionKey, nowMs: number): Tombstone | undefined {
    const tombstone = this.#tombstones.peek(key)
    return tombstone !== undefined && tombstone.forgetAtMs > nowMs ? tombstone : undefined
  }

  add(key: SessionKey, tombstone: Omit<Tombstone, 'forgetAtMs'>, nowMs: number): void {
    const kept = { ...tombstone, forgetAtMs: nowMs + this.#keptMs }
    this.#tombstones.delete(key)
    this.#bytes += bytesOfTombstone(kept)
    this.#tombstones.set(key, kept)
    for (const oldest of this.#tombstones.rvalues()) {
      if (oldest === undefined || oldest.forgetAtMs > nowMs) break
      this.#tombstones.pop()
    }
  }

  delete(key: SessionKey): void {
    this.#tombstones.delete(key)
  }

  /** Forgets the oldest one. One whose session a turn may revive becomes the newest instead. */
  forgetOldest(nowMs: number): boolean {
    const [key] = this.#tombstones.rkeys()
    if (key === undefined) return false
    const oldest = this.#tombstones.get(key)
    return heldUntilMs(oldest?.leases ?? []) <= nowMs && this.#tombstones.delete(key)
  }
}
