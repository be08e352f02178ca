import { SlotMap } from '../../collections/slot-map.ts'
import { heldUntilMs, holdsLease, noLeases, releaseLease, type TurnLease, takeLease } from './turn-leases.ts'

/** The leases of live sessions, by the slots of these. Only those that turns hold now are here, so that turns change what lies together. */
export class SessionLeases {
  readonly #held = new SlotMap<number, readonly TurnLease[]>({ hashOf: (slot) => slot })

  take(slot: number, lease: TurnLease, nowMs: number): void {
    this.put(slot, takeLease(this.#of(slot), lease, nowMs))
  }

  release(slot: number, turnId: string): void {
    const leases = this.#of(slot)
    if (leases.length > 0) this.put(slot, releaseLease(leases, turnId))
  }

  holds(slot: number, turnId: string): boolean {
    return holdsLease(this.#of(slot), turnId)
  }

  /** When the last lease of the session ends; 0 without any. */
  heldUntilMs(slot: number): number {
    return heldUntilMs(this.#of(slot))
  }

  /** Gives a session these leases, in place of those that it has. */
  put(slot: number, leases: readonly TurnLease[]): void {
    if (leases.length === 0) this.#held.delete(slot)
    else this.#held.set(slot, leases)
  }

  /** To be called when the session has ended. */
  drop(slot: number): void {
    this.#held.delete(slot)
  }

  #of(slot: number): readonly TurnLease[] {
    return this.#held.get(slot) ?? noLeases
  }
}
