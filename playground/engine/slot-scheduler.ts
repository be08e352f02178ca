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
  /** Resolves when the task has its slot. `release` must be called once it has ended. */
  acquire(request: SlotRequest): Promise<SlotLease>
  /** Tasks that wait for one. */
  waiting(): number
  isBusy(slotId: number): boolean
}

interface Waiter {
  readonly request: SlotRequest
  readonly settle: (grant: SlotLease) => void
}

/** Creates the scheduler for slots 0 to `slotCount` - 1. */
export function createSlotScheduler(slotCount: number): SlotScheduler {
  const busy = new Set<number>()
  let waiters: readonly Waiter[] = []

  const grant = (slotId: number): SlotLease => {
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

  const slotFor = (request: SlotRequest): number | undefined => {
    if (request.slotId !== undefined) return busy.has(request.slotId) ? undefined : request.slotId
    const idleIds = Array.from({ length: slotCount }, (_, id) => id).filter((id) => !busy.has(id))
    return idleIds.length === 0 ? undefined : request.choose(idleIds)
  }

  const admit = () => {
    waiters = waiters.filter(({ request, settle }) => {
      const slotId = slotFor(request)
      if (slotId === undefined) return true
      settle(grant(slotId))
      return false
    })
  }

  return {
    acquire(request) {
      if (request.signal.aborted) return Promise.resolve({ kind: 'aborted' })
      return new Promise((resolve) => {
        const leave = () => {
          waiters = waiters.filter((other) => other !== waiter)
          resolve({ kind: 'aborted' })
        }
        const settle = (result: SlotLease) => {
          request.signal.removeEventListener('abort', leave)
          resolve(result)
        }
        const waiter: Waiter = { request, settle }
        waiters = [...waiters, waiter]
        request.signal.addEventListener('abort', leave, { once: true })
        admit()
      })
    },
    waiting: () => waiters.length,
    isBusy: (slotId) => busy.has(slotId),
  }
}
