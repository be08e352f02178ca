/** Copies of one resource at one place. */
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

/** Why a piece of work did not get its resources: too many were waiting, or they did not come free in time. */
export type RefusalReason = 'full' | 'timeout'

export type Settlement =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'left' }

/** What a queue tells its owner; called when the queue's state is settled, so that it may be asked again at once. */
export interface QueueObserver {
  /** A piece of work that was waiting does so no more. */
  settled(id: string, settlement: Settlement): void
  /** What a piece of work held came free because its lease ran out. */
  leaseExpired(id: string): void
}

/**
 * Gives copies of resources to pieces of work: by priority, then by age. Work gets all that it needs at once or nothing. While it waits, as many
 * copies of each resource that it needs are kept for it, so that nobody behind it takes what it waits for; whoever needs other resources, or
 * copies that are left beyond that, goes past it. A state machine without timers of its own: `tick` does what the clock brings about.
 */
export interface ResourceQueue {
  /**
   * Each id at most once until it is released, refused or has left. `refused`: too many wait already. Else whoever is last in the order then is
   * refused in place of `work`, and its observer told so.
   */
  request(work: QueuedWork): 'admitted' | 'waiting' | 'refused'
  /** Gives back what the work holds; unknown ids are none of our business. */
  release(id: string): void
  /** Nobody waits for the work any more. */
  leave(id: string): void
  tick(): void
  /** When `tick` is due, by the queue's clock; undefined: nobody waits. */
  nextTickMs(): number | undefined
  inUse(pool: string): number
  waiting(): number
}

interface Waiter extends QueuedWork {
  readonly deadlineMs: number
}

interface Hold {
  readonly needs: readonly PoolNeed[]
  readonly expiresAtMs: number
}

const nothing: ReadonlyMap<string, number> = new Map()

/** `nowMs` is a clock that never goes back. */
export const createResourceQueue = (options: {
  readonly maxWaiting: number
  /** How long work holds its resources when nobody gives them back, milliseconds. */
  readonly leaseMs: number
  readonly nowMs: () => number
  readonly observer: QueueObserver
}): ResourceQueue => {
  const { observer } = options
  const used = new Map<string, number>()
  // All leases are equally long, so that a map in the order of admissions is in the order of expiry, too.
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

  const giveBack = (id: string, { needs }: Hold): void => {
    holds.delete(id)
    for (const { pool, count } of needs) {
      const left = inUse(pool) - count
      if (left === 0) used.delete(pool)
      else used.set(pool, left)
    }
  }

  /** Admits everybody who can be; returns their ids. */
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
      giveBack(id, hold)
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

  const tellAll = (ids: readonly string[], settlement: Settlement): void => {
    for (const id of ids) observer.settled(id, settlement)
  }

  const tick = (): void => {
    const expired = expireHolds()
    const freed = admitWaiting()
    const late = dropLate()
    // What was kept for those who have gone may do for others.
    const admitted = late.length === 0 ? freed : [...freed, ...admitWaiting()]
    for (const id of expired) observer.leaseExpired(id)
    tellAll(late, { kind: 'refused', reason: 'timeout' })
    tellAll(admitted, { kind: 'admitted' })
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
    request: (work) => {
      tick()
      if (waiters.length > 0 || !fits(work)) return enqueue(work)
      take(work)
      return 'admitted'
    },
    release: (id) => {
      const hold = holds.get(id)
      if (hold === undefined) return
      giveBack(id, hold)
      if (waiters.length > 0) tellAll(admitWaiting(), { kind: 'admitted' })
    },
    leave: (id) => {
      if (!waiters.some((waiter) => waiter.id === id)) return
      waiters = waiters.filter((waiter) => waiter.id !== id)
      const admitted = admitWaiting()
      observer.settled(id, { kind: 'left' })
      tellAll(admitted, { kind: 'admitted' })
    },
    tick,
    nextTickMs: () => {
      if (waiters.length === 0) return undefined
      const [oldest] = holds.values()
      const leaseEndMs = oldest?.expiresAtMs ?? Number.POSITIVE_INFINITY
      return waiters.reduce((soonestMs, { deadlineMs }) => Math.min(soonestMs, deadlineMs), leaseEndMs)
    },
    inUse,
    waiting: () => waiters.length,
  }
}
