import { createFullPods } from './full-pods.ts'
import { createQueueOrder } from './queue-order.ts'
import type { Placement, QueuedWork } from './queued-work.ts'
import { createResources, type PoolNeed } from './resources.ts'

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
  /** Reserved for it. */
  needs: readonly PoolNeed[]
  /** It has been asked since that change of what is free. Undefined: it is asked in any case. */
  askedAt: number | undefined
  askedMs: number
}

/** How long one call asks waiting work, milliseconds: longer it would hold up all other requests. Then a tick goes on. */
const askingMs = 2

/**
 * Work that cannot start at once, in order ({@link createQueueOrder}). Resources it gets all at once or not at all;
 * while it waits for them they are reserved: work behind it takes only others. Whether a pod has room is found out by
 * trying: one that had none counts as full ({@link createFullPods}), and then one piece of work tries again. Work is
 * asked only when something changed for it. It has no timers: `tick` applies deadlines, by the monotonic clock `nowMs`.
 */
export const createTurnQueue = (options: {
  readonly maxWaiting: () => number
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
  const fullPods = createFullPods(nowMs)
  /** Pods that came to have room, perhaps, and were not offered to all work. */
  const hopes = new Set<string>()
  const waiters = new Map<string, Waiter>()
  /** Counts what came free. */
  let changes = 0
  /** Since then not all work was asked, and the next tick goes on. */
  let unfinishedMs: number | undefined

  const markFull = (pod: string, forLongAlone: boolean): void => {
    fullPods.mark(pod, forLongAlone)
    hopes.delete(pod)
  }

  const hope = (pod: string): void => {
    // Room of other pods all work knows.
    if (!fullPods.open(pod) || waiters.size === 0) return
    hopes.add(pod)
    changes += 1
  }

  const release = (id: string): boolean => {
    const isReleased = resources.release(id)
    if (isReleased) changes += 1
    return isReleased
  }

  const start = (work: QueuedWork, { pod, needs }: Placement, withRoom = true): Settlement => {
    resources.take(work.id, needs)
    order.started(work)
    return { kind: 'admitted', pod, hasRoom: withRoom }
  }

  const remove = ({ work, needs }: Waiter): void => {
    waiters.delete(work.id)
    if (needs.length === 0) return
    resources.cameFree(needs)
    changes += 1
  }

  /** Asks the waiter, and starts it if it finds a place; undefined: it waits on, and has its reservation. */
  const ask = (waiter: Waiter, reserved: ReturnType<typeof resources.reservations>): Settled | undefined => {
    const { work } = waiter
    waiter.askedAt = changes
    waiter.askedMs = nowMs()
    const placement = work.place({ hasRoom: fullPods.hasRoom, fits: reserved.fits })
    if (placement === undefined || !reserved.fits(placement.needs)) {
      if (placement === undefined) waiter.seeksRoom = true
      waiter.needs = placement?.needs ?? []
      reserved.add(waiter.needs)
      return undefined
    }
    remove(waiter)
    const settled = [work.id, start(work, placement)] as const
    // One piece of work tries; the others wait until it has room or has none.
    if (waiter.seeksRoom && placement.pod !== undefined) markFull(placement.pod, false)
    return settled
  }

  /** Starts the work that finds a place, as far as it gets in {@link askingMs}. */
  const goOn = (): readonly Settled[] => {
    const untilMs = nowMs() + askingMs
    const started: Settled[] = []
    const reserved = resources.reservations()
    const isToAsk = ({ askedAt, needs }: Waiter): boolean =>
      askedAt === undefined || (askedAt !== changes && (hopes.size > 0 || (needs.length > 0 && reserved.leavesSome())))
    const counts = (waiter: Waiter): boolean => waiter.needs.length > 0 || isToAsk(waiter)
    let ahead = order.sorted([...waiters.values()].filter(counts))
    unfinishedMs = undefined
    for (let waiter = ahead.next(); waiter !== undefined; waiter = ahead.next()) {
      if (!isToAsk(waiter)) {
        reserved.add(waiter.needs)
        continue
      }
      const now = nowMs()
      if (now > untilMs) {
        unfinishedMs = now
        return started
      }
      const settled = ask(waiter, reserved)
      if (settled === undefined) continue
      started.push(settled)
      ahead = order.sorted(ahead.rest().filter(counts))
    }
    hopes.clear()
    resources.offered()
    return started
  }

  /** The same, unless a tick has to go on first. */
  const startWaiting = (): readonly Settled[] => (unfinishedMs === undefined ? goOn() : [])

  /** Where work goes that has waited for room for too long; undefined: it waits for resources. */
  const placeWithoutRoom = ({ work, seeksRoom }: Waiter): Placement | undefined => {
    const { fits } = resources.reservations()
    const withRoom = work.place({ hasRoom: fullPods.hasRoom, fits })
    // Where there may be room, work that seeks it has not been asked since.
    if (withRoom !== undefined && !seeksRoom) return undefined
    const placement = withRoom ?? work.place({ hasRoom: () => true, fits })
    return placement !== undefined && fits(placement.needs) ? placement : undefined
  }

  const giveUp = (waiter: Waiter, reason: RefusalReason): Settled => {
    const { work } = waiter
    remove(waiter)
    const placement = placeWithoutRoom(waiter)
    return [work.id, placement === undefined ? { kind: 'refused', reason } : start(work, placement, false)]
  }

  /** As far as it gets; the others are due at once. */
  const dropLate = (): readonly Settled[] => {
    const untilMs = nowMs() + askingMs
    const late: Settled[] = []
    for (const waiter of waiters.values()) {
      const now = nowMs()
      if (now > untilMs) break
      if (deadlineOf(waiter) <= now) late.push(giveUp(waiter, 'timeout'))
    }
    return late
  }

  const notify = (settled: readonly Settled[]): void => {
    for (const [id, settlement] of settled) observer.settled(id, settlement)
  }

  const tick = (): void => {
    const expired = resources.expire()
    if (expired.length > 0) changes += 1
    for (const pod of fullPods.due(waiters.size)) hope(pod)
    const now = nowMs()
    for (const waiter of waiters.values()) {
      const { holdsOutUntilMs = 0 } = waiter.work
      if (waiter.askedMs < holdsOutUntilMs && holdsOutUntilMs <= now) waiter.askedAt = undefined
    }
    const started = goOn()
    const late = dropLate()
    // Copies reserved for refused work may suffice for other work.
    const more = late.length === 0 ? [] : startWaiting()
    for (const id of expired) observer.leaseExpired(id)
    notify([...started, ...late, ...more])
  }

  const enqueue = (work: QueuedWork, seeksRoom: boolean): Settlement | 'waiting' => {
    order.arrived(work, waiters.size)
    waiters.set(work.id, { work, seeksRoom, needs: [], askedAt: undefined, askedMs: nowMs() })
    const settled = new Map(startWaiting())
    const own = settled.get(work.id)
    settled.delete(work.id)
    notify([...settled])
    if (own !== undefined) return own
    if (waiters.size <= options.maxWaiting()) return 'waiting'
    const last = order.last([...waiters.values()])
    if (last === undefined) return 'waiting'
    const dropped = giveUp(last, 'full')
    if (last.work.id === work.id) return dropped[1]
    notify([dropped])
    return 'waiting'
  }

  return {
    /**
     * Starts work, or lets it wait. Each id at most once until it is released, refused or has left. Where more than
     * `maxWaiting` would wait, the last in the order does not: `work` itself, or other work (`observer.settled`).
     */
    request: (work: QueuedWork): Settlement | 'waiting' => {
      if (unfinishedMs === undefined || waiters.size === 0) tick()
      if (waiters.size > 0) return enqueue(work, false)
      const { fits } = resources.reservations()
      const placement = work.place({ hasRoom: fullPods.hasRoom, fits })
      return placement !== undefined && fits(placement.needs)
        ? start(work, placement)
        : enqueue(work, placement === undefined)
    },
    /** Work that was admitted with room did not find it: it waits again, and keeps its place in the order. */
    noRoom: (work: QueuedWork, pod: string, isShort: boolean): Settlement | 'waiting' => {
      release(work.id)
      order.withdrawn(work)
      markFull(pod, !isShort)
      return enqueue(work, false)
    },
    /** There is room at the pod, or there may be. */
    roomAt: (pod: string): void => {
      hope(pod)
      notify(startWaiting())
    },
    /** Releases what the work holds. Unknown ids are ignored. */
    release: (id: string): void => {
      if (release(id)) notify(startWaiting())
    },
    /** Removes waiting work. Unknown ids are ignored. */
    leave: (id: string): void => {
      const waiter = waiters.get(id)
      if (waiter === undefined) return
      remove(waiter)
      const started = startWaiting()
      notify([[id, { kind: 'left' }], ...started])
    },
    tick,
    /** When `tick` is due, by the queue's clock; undefined: no work waits. */
    nextTickMs: (): number | undefined => {
      if (waiters.size === 0) return undefined
      if (unfinishedMs !== undefined) return unfinishedMs
      let nextMs = Math.min(resources.nextExpiryMs(), fullPods.lookMs())
      for (const waiter of waiters.values()) nextMs = Math.min(nextMs, deadlineOf(waiter))
      return nextMs
    },
    inUse: resources.inUse,
    waiting: (): number => waiters.size,
  }
}

/** When the waiter stops waiting, by the queue's clock. */
const deadlineOf = ({ work, seeksRoom }: Waiter): number =>
  work.arrivedMs + (seeksRoom ? work.roomWaitMs : work.resourcesWaitMs)
