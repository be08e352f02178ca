import type { KvLog } from '../connector-definition.ts'
import type { SlotLedger, SlotTurn } from '../slots/slot-ledger.ts'

/** Lease of a slot, milliseconds: how long a gateway that is killed, or a lost answer of the ledger, keeps a slot. */
export const leaseMs = 6_000
const renewalMs = 2_000

/** The slots that turns of this process hold. One call to the ledger renews all their leases every 2 s. */
export interface OpenClaims {
  /** A turn holds a slot from now on. */
  add(turn: SlotTurn): void
  /** The lease is not renewed any more, and ends within 6 s. */
  drop(turnId: string): void
  /** No lease is renewed any more. */
  close(): void
}

/** A turn whose end is never reported is given up after `maxTurnMs`. */
export const createOpenClaims = (
  ledger: Pick<SlotLedger, 'renew'>,
  { maxTurnMs, log }: { readonly maxTurnMs: number; readonly log: KvLog },
): OpenClaims => {
  const open = new Map<string, SlotTurn & { readonly sinceMs: number }>()
  const renew = async (): Promise<void> => {
    const oldestMs = performance.now() - maxTurnMs
    for (const { turnId, sinceMs } of open.values()) if (sinceMs < oldestMs) open.delete(turnId)
    const turns = [...open.values()]
    try {
      const held = await ledger.renew(turns, { leaseMs })
      // The end of a turn may have been reported to another process, which released the slot.
      for (const [index, { turnId }] of turns.entries()) if (held[index] === false) open.delete(turnId)
    } catch (err) {
      log.debug('leases of slots were not renewed', { slots: turns.length, err })
    }
  }
  const timer = setInterval(() => void (open.size > 0 && renew()), renewalMs).unref()
  return {
    add: ({ pod, slot, turnId }) => void open.set(turnId, { pod, slot, turnId, sinceMs: performance.now() }),
    drop: (turnId) => void open.delete(turnId),
    close: () => clearInterval(timer),
  }
}
