// One task in a slot at a time, others in order of arrival. A task that is pinned to a busy slot does not hold up those
// behind it that can run elsewhere.

/** A task that needs a slot. */
export interface SlotRequest {
  /** The one slot that will do, or undefined for any. */
  readonly slotId: number | undefined
  /** Chooses one of the idle slots, of which there is at least one. Called only without `slotId`. */
  readonly choose: (idleIds: readonly number[]) => number
  /** Ends the waiting, as when the client has left. */
  readonly signal: AbortSignal
}

/** The outcome of `acquire`. */
export type SlotLease =
  | { readonly kind: 'granted'; readonly slotId: number; readonly release: () => void }
  | { readonly kind: 'aborted' }

/** Hands out slots. */
export interface SlotScheduler {
  /** Resolves when the task has its slot. `release` must be called once it has ended; further calls do nothing. */
  acquire(request: SlotRequest): Promise<SlotLease>
  /** Tasks that wait for one. */
  waiting(): number
  isBusy(slotId: number): boolean
}

interface Waiter {
  readonly request: SlotRequest
  readonly resolve: (lease: SlotLease) => void
}

/** Creates the scheduler for slots 0 to `slotCount` - 1. */
export const createSlotScheduler = (slotCount: number): SlotScheduler => {
  const busy = new Map<number, Waiter>()
  const waiters = new Set<Waiter>()

  const admit = (): void => {
    for (const waiter of waiters) {
      const { slotId, choose } = waiter.request
      const idleIds = [...Array(slotCount).keys()].filter((id) => !busy.has(id) && (slotId ?? id) === id)
      if (idleIds.length === 0) continue
      const granted = slotId ?? choose(idleIds)
      waiters.delete(waiter)
      busy.set(granted, waiter)
      const release = (): void => {
        if (busy.get(granted) !== waiter) return
        busy.delete(granted)
        admit()
      }
      waiter.resolve({ kind: 'granted', slotId: granted, release })
    }
  }

  return {
    acquire: (request) =>
      new Promise((resolve) => {
        const leave = (): void => {
          waiters.delete(waiter)
          resolve({ kind: 'aborted' })
        }
        const settle = (lease: SlotLease): void => {
          request.signal.removeEventListener('abort', leave)
          resolve(lease)
        }
        const waiter: Waiter = { request, resolve: settle }
        if (request.signal.aborted) return leave()
        waiters.add(waiter)
        request.signal.addEventListener('abort', leave, { once: true })
        admit()
      }),
    waiting: () => waiters.size,
    isBusy: (slotId) => busy.has(slotId),
  }
}
