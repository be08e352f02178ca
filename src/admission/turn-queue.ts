import { createQueueOrder } from './queue-order.ts'
import type { Placement, QueuedWork, Vacancies } from './queued-work.ts'
import { createResources } from './resources.ts'

/** Why work was refused: too much work waits (`full`), or the resources did not become free in time. */
export type RefusalReason = 'full' | 'timeout'

export type Settlement =
  /** `hasRoom` false: it goes on without room, since it waited for too long, or too much work waits. */
  | { readonly kind: 'admitted'; readonly pod: string | undefined; readonly hasRoom: boolean }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'left' }

type Settled = readonly [id: string, settlement: Settlement]

interface Waiter {
  readonly work: QueuedWork
  /** No pod had room for it. Else it waits for resources. */
  seeksRoom: boolean
}

/** A pod that had no room. */
interface FullPod {
  /** Whether it had none for long work alone. */
  readonly forLongAlone: boolean
  readonly sinceMs: number
}

/** Room of which nobody tells, as that of requests without a session, is looked for so often, milliseconds. */
const lookAgainMs = 250

/**
 * Work that cannot start at once, in order ({@link createQueueOrder}). Resources it gets all at once or not at all;
 * while it waits for them they are reserved: work behind it takes only others. Whether a pod has room is found out by
 * trying: one that had none counts as full until room is reported there, or for {@link lookAgainMs}, and then one piece
 * of work tries again. A state machine without timers: `tick` applies deadlines. `nowMs` is a monotonic clock.
 */
export const createTurnQueue = (options: {
  readonly maxWaiting: number
  /** How long work holds its resources when they are not released, milliseconds. */
  readonly leaseMs: number
  readonly nowMs: () => number
  /** Called after the queue's state has changed, so that the observer may call the queue again. */
  readonly observer: {
    /** Work stopped waiting. */
    settled(id: string, settlement: Settlement): void
    /** The lease of work expired, and what it held is free. */
    leaseExpired(id: string): void
  }
}) => {
  const { observer, nowMs } = options
  const resources = createResources(options)
  const order = createQueueOrder()
  const fullPods = new Map<string, FullPod>()
  /** Pods that may have room since the last look. */
  const hopes = new Set<string>()
  let waiters: readonly Waiter[] = []

  const hasRoom: Vacancies['hasRoom'] = (pod, isShort) => {
    const full = fullPods.get(pod)
    return full === undefined || (isShort && full.forLongAlone)
  }

  const markFull = (pod: string, forLongAlone: boolean): void => {
    fullPods.set(pod, { forLongAlone, sinceMs: nowMs() })
    hopes.delete(pod)
  }

  const start = (work: QueuedWork, { pod, needs }: Placement, withRoom = true): Settlement => {
    resources.take(work.id, needs)
    order.started(work)
    return { kind: 'admitted', pod, hasRoom: withRoom }
  }

  const remove = (id: string): void => {
    waiters = waiters.filter(({ work }) => work.id !== id)
  }

  /** Starts all work that finds a place. `all`: also asks work that no report of room concerns. */
  const startWaiting = (all: boolean): readonly Settled[] => {
    const started: Settled[] = []
    const reserved = resources.reservations()
    const vacancies: Vacancies = { hasRoom, fits: reserved.fits }
    let ahead = order.sorted(waiters)
    for (let waiter = ahead.shift(); waiter !== undefined; waiter = ahead.shift()) {
      if (waiter.seeksRoom && !all && hopes.size === 0) continue
      const { work } = waiter
      const placement = work.place(vacancies)
      if (placement === undefined) waiter.seeksRoom = true
      else if (!reserved.fits(placement.needs)) reserved.add(placement.needs)
      else {
        started.push([work.id, start(work, placement)])
        remove(work.id)
        // One piece of work tries; the others wait until it has room or has none.
        if (waiter.seeksRoom && placement.pod !== undefined) markFull(placement.pod, false)
        ahead = order.sorted(ahead)
      }
    }
    hopes.clear()
    return started
  }

  /** Where work goes that has waited for room for too long; undefined: it waits for resources. */
  const placeWithoutRoom = ({ work, seeksRoom }: Waiter): Placement | undefined => {
    const { fits } = resources.reservations()
    const withRoom = work.place({ hasRoom, fits })
    // Where there may be room, work that seeks it has not been asked since.
    if (withRoom !== undefined && !seeksRoom) return undefined
    const placement = withRoom ?? work.place({ hasRoom: () => true, fits })
    return placement !== undefined && fits(placement.needs) ? placement : undefined
  }

  const giveUp = (waiter: Waiter, reason: RefusalReason): Settled => {
    const { work } = waiter
    remove(work.id)
    const placement = placeWithoutRoom(waiter)
    return [work.id, placement === undefined ? { kind: 'refused', reason } : start(work, placement, false)]
  }

  const dropLate = (): readonly Settled[] => {
    const now = nowMs()
    return waiters.flatMap((waiter) => (deadlineOf(waiter) <= now ? [giveUp(waiter, 'timeout')] : []))
  }

  const notify = (settled: readonly Settled[]): void => {
    for (const [id, settlement] of settled) observer.settled(id, settlement)
  }

  const tick = (): void => {
    const now = nowMs()
    const expired = resources.expire()
    const due = [...fullPods].filter(([, { sinceMs }]) => sinceMs + lookAgainMs <= now)
    for (const [pod] of due) {
      fullPods.delete(pod)
      hopes.add(pod)
    }
    if (waiters.length === 0 && expired.length === 0) return
    const started = startWaiting(due.length > 0)
    const late = dropLate()
    // Copies reserved for refused work may suffice for other work.
    const more = late.length === 0 ? [] : startWaiting(false)
    for (const id of expired) observer.leaseExpired(id)
    notify([...started, ...late, ...more])
  }

  const enqueue = (work: QueuedWork, seeksRoom: boolean): Settlement | 'waiting' => {
    order.arrived(work, waiters.length)
    waiters = [...waiters, { work, seeksRoom }]
    const settled = new Map(startWaiting(false))
    const own = settled.get(work.id)
    settled.delete(work.id)
    notify([...settled])
    if (own !== undefined) return own
    if (waiters.length <= options.maxWaiting) return 'waiting'
    const last = order.sorted(waiters).at(-1) ?? { work, seeksRoom }
    const dropped = giveUp(last, 'full')
    if (last.work.id === work.id) return dropped[1]
    notify([dropped])
    return 'waiting'
  }

  return {
    /**
     * Starts work, or lets it wait. Each id at most once until it is released, refused or has left. When more than
     * `maxWaiting` would wait, the last in the order does not: `work` itself, or other work, of which the observer is
     * informed.
     */
    request: (work: QueuedWork): Settlement | 'waiting' => {
      tick()
      if (waiters.length > 0) return enqueue(work, false)
      const { fits } = resources.reservations()
      const placement = work.place({ hasRoom, fits })
      return placement !== undefined && fits(placement.needs)
        ? start(work, placement)
        : enqueue(work, placement === undefined)
    },
    /** Work that was admitted with room did not find it: it waits again, and keeps its place in the order. */
    noRoom: (work: QueuedWork, pod: string, isShort: boolean): Settlement | 'waiting' => {
      resources.release(work.id)
      order.withdrawn(work)
      markFull(pod, !isShort)
      return enqueue(work, false)
    },
    /** There is room at the pod, or there may be. */
    roomAt: (pod: string): void => {
      fullPods.delete(pod)
      hopes.add(pod)
      if (waiters.length > 0) notify(startWaiting(false))
      hopes.clear()
    },
    /** Releases what the work holds. Unknown ids are ignored. */
    release: (id: string): void => {
      if (resources.release(id) && waiters.length > 0) notify(startWaiting(false))
    },
    /** Removes waiting work. Unknown ids are ignored. */
    leave: (id: string): void => {
      if (!waiters.some(({ work }) => work.id === id)) return
      remove(id)
      const started = startWaiting(false)
      notify([[id, { kind: 'left' }], ...started])
    },
    tick,
    /** When `tick` is due, by the queue's clock; undefined: no work waits. */
    nextTickMs: (): number | undefined => {
      if (waiters.length === 0) return undefined
      const lookMs = [...fullPods.values()].map(({ sinceMs }) => sinceMs + lookAgainMs)
      return [...lookMs, ...waiters.map(deadlineOf)].reduce(
        (soonest, at) => Math.min(soonest, at),
        resources.nextExpiryMs(),
      )
    },
    inUse: resources.inUse,
    waiting: (): number => waiters.length,
  }
}

/** When the waiter stops waiting, by the queue's clock. */
const deadlineOf = ({ work, seeksRoom }: Waiter): number =>
  work.arrivedMs + (seeksRoom ? work.roomWaitMs : work.resourcesWaitMs)
