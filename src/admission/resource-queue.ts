/** Copies of one resource at one place that a piece of work needs. */
export interface PoolNeed {
  /** Names the resource and the place. */
  readonly pool: string
  readonly count: number
  /** Copies there are, at least `count`. */
  readonly capacity: number
}

/** A piece of work that asks for resources. */
export interface QueuedWork {
  readonly id: string
  /** 1 goes first. */
  readonly priority: number
  readonly needs: readonly PoolNeed[]
  /** How long it may wait, milliseconds. */
  readonly waitMs: number
}

/** Why work was refused: too much work waits (`full`), or the resources did not become free in time. */
export type RefusalReason = 'full' | 'timeout'

export type Settlement =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'left' }

interface Waiter extends QueuedWork {
  readonly deadlineMs: number
}

interface Hold {
  readonly needs: readonly PoolNeed[]
  readonly expiresAtMs: number
}

const nothing: ReadonlyMap<string, number> = new Map()

/**
 * Allocates copies of resources to work: by priority, then by age. Work gets all that it needs at once or nothing.
 * While it waits, the copies that it needs are reserved for it: work behind it overtakes it only with other copies. A
 * state machine without timers: `tick` applies deadlines and leases. `nowMs` is a monotonic clock.
 */
export const createResourceQueue = (options: {
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
  const { observer } = options
  const used = new Map<string, number>()
  // All leases are equally long: a map in the order of admissions is also in the order of expiry.
  const holds = new Map<string, Hold>()
  /** By priority, then age. */
  let waiters: readonly Waiter[] = []

  const inUse = (pool: string): number => used.get(pool) ?? 0

  const fits = ({ needs }: QueuedWork, reserved: ReadonlyMap<string, number> = nothing): boolean =>
    needs.every(({ pool, count, capacity }) => inUse(pool) + (reserved.get(pool) ?? 0) + count <= capacity)

  const take = ({ id, needs }: QueuedWork): void => {
    for (const { pool, count } of needs) used.set(pool, inUse(pool) + count)
    holds.set(id, { needs, expiresAtMs: options.nowMs() + options.leaseMs })
  }

  const free = (id: string, { needs }: Hold): void => {
    holds.delete(id)
    for (const { pool, count } of needs) {
      const left = inUse(pool) - count
      if (left === 0) used.delete(pool)
      else used.set(pool, left)
    }
  }

  /** Admits all work that fits; returns its ids. */
  const admitWaiting = (): readonly string[] => {
    const admitted: string[] = []
    const reserved = new Map<string, number>()
    waiters = waiters.filter((waiter) => {
      if (fits(waiter, reserved)) {
        take(waiter)
        admitted.push(waiter.id)
        return false
      }
      for (const { pool, count } of waiter.needs) reserved.set(pool, (reserved.get(pool) ?? 0) + count)
      return true
    })
    return admitted
  }

  const expireHolds = (): readonly string[] => {
    const now = options.nowMs()
    const expired: string[] = []
    for (const [id, hold] of holds) {
      if (hold.expiresAtMs > now) break
      free(id, hold)
      expired.push(id)
    }
    return expired
  }

  const dropLate = (): readonly string[] => {
    const now = options.nowMs()
    const late = waiters.filter((waiter) => waiter.deadlineMs <= now).map(({ id }) => id)
    if (late.length > 0) waiters = waiters.filter((waiter) => waiter.deadlineMs > now)
    return late
  }

  const notify = (ids: readonly string[], settlement: Settlement): void => {
    for (const id of ids) observer.settled(id, settlement)
  }

  const tick = (): void => {
    const expired = expireHolds()
    const freed = admitWaiting()
    const late = dropLate()
    // Copies reserved for refused work may suffice for other work.
    const admitted = late.length === 0 ? freed : [...freed, ...admitWaiting()]
    for (const id of expired) observer.leaseExpired(id)
    notify(late, { kind: 'refused', reason: 'timeout' })
    notify(admitted, { kind: 'admitted' })
  }

  const enqueue = (work: QueuedWork): 'admitted' | 'waiting' | 'refused' => {
    const waiter: Waiter = { ...work, deadlineMs: options.nowMs() + work.waitMs }
    const behind = waiters.findIndex(({ priority }) => priority > work.priority)
    const position = behind === -1 ? waiters.length : behind
    waiters = [...waiters.slice(0, position), waiter, ...waiters.slice(position)]
    const admitted = admitWaiting()
    if (admitted.includes(work.id)) return 'admitted'
    const last = waiters.at(-1)
    if (last === undefined || waiters.length <= options.maxWaiting) return 'waiting'
    waiters = waiters.slice(0, -1)
    if (last.id === work.id) return 'refused'
    observer.settled(last.id, { kind: 'refused', reason: 'full' })
    return 'waiting'
  }

  return {
    /**
     * Each id at most once until it is released, refused or has left. When more than `maxWaiting` would wait, the last
     * in the order is refused: `work` itself (`refused`), or other work, which the observer receives.
     */
    request: (work: QueuedWork): 'admitted' | 'waiting' | 'refused' => {
      tick()
      if (waiters.length > 0 || !fits(work)) return enqueue(work)
      take(work)
      return 'admitted'
    },
    /** Releases what the work holds. Unknown ids are ignored. */
    release: (id: string): void => {
      const hold = holds.get(id)
      if (hold === undefined) return
      free(id, hold)
      if (waiters.length > 0) notify(admitWaiting(), { kind: 'admitted' })
    },
    /** Removes waiting work. Unknown ids are ignored. */
    leave: (id: string): void => {
      if (!waiters.some((waiter) => waiter.id === id)) return
      waiters = waiters.filter((waiter) => waiter.id !== id)
      const admitted = admitWaiting()
      observer.settled(id, { kind: 'left' })
      notify(admitted, { kind: 'admitted' })
    },
    tick,
    /** When `tick` is due, by the queue's clock; undefined: no work waits. */
    nextTickMs: (): number | undefined => {
      if (waiters.length === 0) return undefined
      const [oldest] = holds.values()
      const leaseEndMs = oldest?.expiresAtMs ?? Number.POSITIVE_INFINITY
      return waiters.reduce((soonestMs, { deadlineMs }) => Math.min(soonestMs, deadlineMs), leaseEndMs)
    },
    inUse,
    waiting: (): number => waiters.length,
  }
}
