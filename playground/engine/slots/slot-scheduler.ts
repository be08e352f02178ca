// Who may use which slot when: one task in a slot at a time, others in order of arrival. A task that is pinned to a
// busy slot does not hold up those behind it that can go elsewhere.

/** A task that wants a slot. */
export interface SlotWish {
  /** The one slot that will do, or undefined for any. */
  readonly slotId: number | undefined
  /** Chooses one of the idle slots, of which there is at least one. Called only without `slotId`. */
  readonly choose: (idleIds: readonly number[]) => number
  /** Ends the waiting, as when the client has left. */
  readonly signal: AbortSignal
}

/** What came of waiting for a slot. */
export type SlotGrant =
  | { readonly kind: 'granted'; readonly slotId: number; readonly release: () => void }
  | { readonly kind: 'aborted' }

/** Hands out slots. */
export interface SlotScheduler {
  /** Resolves when the task has its slot. `release` must be called once it has ended. */
  acquire(wish: SlotWish): Promise<SlotGrant>
  /** Tasks that hold a slot. */
  running(): number
  /** Tasks that wait for one. */
  waiting(): number
  isBusy(slotId: number): boolean
}

interface Waiter {
  readonly wish: SlotWish
  readonly settle: (grant: SlotGrant) => void
}

/** Creates the scheduler for slots 0 to `slotCount` - 1. */
export function createSlotScheduler(slotCount: number): SlotScheduler {
  const busy = new Set<number>()
  let waiters: readonly Waiter[] = []

  const grant = (slotId: number): SlotGrant => {
    busy.add(slotId)
    let held = true
    const release = () => {
      if (!held) return
      held = false
      busy.delete(slotId)
      admit()
    }
    return { kind: 'granted', slotId, release }
  }

  const slotFor = (wish: SlotWish): number | undefined => {
    if (wish.slotId !== undefined) return busy.has(wish.slotId) ? undefined : wish.slotId
    const idleIds = Array.from({ length: slotCount }, (_, id) => id).filter((id) => !busy.has(id))
    return idleIds.length === 0 ? undefined : wish.choose(idleIds)
  }

  const admit = () => {
    waiters = waiters.filter(({ wish, settle }) => {
      const slotId = slotFor(wish)
      if (slotId === undefined) return true
      settle(grant(slotId))
      return false
    })
  }

  return {
    acquire(wish) {
      if (wish.signal.aborted) return Promise.resolve({ kind: 'aborted' })
      return new Promise((resolve) => {
        const leave = () => {
          waiters = waiters.filter((other) => other !== waiter)
          resolve({ kind: 'aborted' })
        }
        const settle = (result: SlotGrant) => {
          wish.signal.removeEventListener('abort', leave)
          resolve(result)
        }
        const waiter: Waiter = { wish, settle }
        waiters = [...waiters, waiter]
        wish.signal.addEventListener('abort', leave, { once: true })
        admit()
      })
    },
    running: () => busy.size,
    waiting: () => waiters.length,
    isBusy: (slotId) => busy.has(slotId),
  }
}
