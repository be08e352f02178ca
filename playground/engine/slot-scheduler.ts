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

interface Waiter {
  readonly request: SlotRequest
  readonly grant: (slotId: number) => void
}

/** Hands out slots 0 to `slotCount` - 1. */
export const createSlotScheduler = (slotCount: number) => {
  const busy = new Set<number>()
  const waiters = new Set<Waiter>()

  const admit = (): void => {
    for (const waiter of waiters) {
      const { slotId, choose } = waiter.request
      const idleIds = [...Array(slotCount).keys()].filter((id) => !busy.has(id) && (slotId ?? id) === id)
      if (idleIds.length === 0) continue
      const granted = slotId ?? choose(idleIds)
      waiters.delete(waiter)
      busy.add(granted)
      waiter.grant(granted)
    }
  }

  const acquire = (request: SlotRequest): Promise<number> =>
    new Promise((resolve, reject) => {
      const { signal } = request
      signal.throwIfAborted()
      const leave = (): void => {
        waiters.delete(waiter)
        reject(signal.reason)
      }
      const grant = (slotId: number): void => {
        signal.removeEventListener('abort', leave)
        resolve(slotId)
      }
      const waiter: Waiter = { request, grant }
      waiters.add(waiter)
      signal.addEventListener('abort', leave, { once: true })
      admit()
    })

  return {
    /** Runs the work in a slot of its own, once there is one. @throws the signal's reason, or what `work` throws */
    run: async <Result>(request: SlotRequest, work: (slotId: number) => Promise<Result>): Promise<Result> => {
      const slotId = await acquire(request)
      try {
        return await work(slotId)
      } finally {
        busy.delete(slotId)
        admit()
      }
    },
    /** Tasks that wait for a slot. */
    waiting: (): number => waiters.size,
    isBusy: (slotId: number): boolean => busy.has(slotId),
  }
}

export type SlotScheduler = ReturnType<typeof createSlotScheduler>
