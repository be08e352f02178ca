import { hashOfId, SlotMap } from '../../collections/slot-map.ts'
import type { SessionKey } from '../session-record.ts'
import { heldUntilMs, holdsLease, noLeases, releaseLease, type TurnLease, takeLease } from './turn-leases.ts'

/**
 * The leases of live sessions. They lie apart from their sessions, of which there may be a million: only those that turns hold now are here, so that
 * a turn changes what lies together, and a collection of young garbage does not have to look into as many corners of the heap as turns came by.
 */
export class SessionLeases {
  readonly #held = new SlotMap<SessionKey, readonly TurnLease[]>({ hashOf: hashOfId })

  take(key: SessionKey, lease: TurnLease, nowMs: number): void {
    this.put(key, takeLease(this.#of(key), lease, nowMs))
  }

  release(key: SessionKey, turnId: string): void {
    const leases = this.#of(key)
    if (leases.length > 0) this.put(key, releaseLease(leases, turnId))
  }

  holds(key: SessionKey, turnId: string): boolean {
    return holdsLease(this.#of(key), turnId)
  }

  /** When the last lease of the session ends; 0 without any. */
  heldUntilMs(key: SessionKey): number {
    return heldUntilMs(this.#of(key))
  }

  /** Gives a session these leases, in place of those that it has. */
  put(key: SessionKey, leases: readonly TurnLease[]): void {
    if (leases.length === 0) this.#held.delete(key)
    else this.#held.set(key, leases)
  }

  /** To be called when the session has ended. */
  drop(key: SessionKey): void {
    this.#held.delete(key)
  }

  #of(key: SessionKey): readonly TurnLease[] {
    return this.#held.get(key) ?? noLeases
  }
}
