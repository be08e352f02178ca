/** Copies of one resource at one place that a piece of work needs. */
export interface PoolNeed {
  /** Names the resource and the place. */
  readonly pool: string
  readonly count: number
  /** Copies there are, at least `count`. */
  readonly capacity: number
}

interface Hold {
  readonly needs: readonly PoolNeed[]
  readonly expiresAtMs: number
}

/** Counts who holds how many copies of which resource. `nowMs` is a monotonic clock. */
export const createResources = ({ leaseMs, nowMs }: { readonly leaseMs: number; readonly nowMs: () => number }) => {
  const used = new Map<string, number>()
  // All leases are equally long: a map in the order of admissions is also in the order of expiry.
  const holds = new Map<string, Hold>()
  /** One copy of each pool where copies came free. */
  const freed = new Map<string, PoolNeed>()
  const inUse = (pool: string): number => used.get(pool) ?? 0

  const cameFree = (needs: readonly PoolNeed[]): void => {
    for (const need of needs) freed.set(need.pool, { ...need, count: 1 })
  }

  const free = (id: string, { needs }: Hold): void => {
    holds.delete(id)
    for (const { pool, count } of needs) {
      const left = inUse(pool) - count
      if (left === 0) used.delete(pool)
      else used.set(pool, left)
    }
    cameFree(needs)
  }

  return {
    inUse,
    /** Work holds what it needs until `release`, or for the length of a lease. */
    take: (id: string, needs: readonly PoolNeed[]): void => {
      if (needs.length === 0) return
      for (const { pool, count } of needs) used.set(pool, inUse(pool) + count)
      holds.set(id, { needs, expiresAtMs: nowMs() + leaseMs })
    },
    /** Frees what the work holds; false: nothing. */
    release: (id: string): boolean => {
      const hold = holds.get(id)
      if (hold !== undefined) free(id, hold)
      return hold !== undefined
    },
    /** Frees what is held for longer than a lease; the ids of its holders. */
    expire: (): readonly string[] => {
      const now = nowMs()
      const expired: string[] = []
      for (const [id, hold] of holds) {
        if (hold.expiresAtMs > now) break
        free(id, hold)
        expired.push(id)
      }
      return expired
    },
    /** When the oldest lease ends. */
    nextExpiryMs: (): number => {
      const [oldest] = holds.values()
      return oldest?.expiresAtMs ?? Number.POSITIVE_INFINITY
    },
    /** Copies that were reserved no longer are. */
    cameFree,
    /** All work was asked that may want what came free. */
    offered: (): void => freed.clear(),
    /** What is free beside what is reserved; at first nothing is. */
    reservations: () => {
      const reserved = new Map<string, number>()
      const fits = (needs: readonly PoolNeed[]): boolean =>
        needs.every(({ pool, count, capacity }) => inUse(pool) + (reserved.get(pool) ?? 0) + count <= capacity)
      return {
        fits,
        /** Whether a copy is left of what came free since {@link offered}. */
        leavesSome: (): boolean => [...freed.values()].some((copy) => fits([copy])),
        add: (needs: readonly PoolNeed[]): void => {
          for (const { pool, count } of needs) reserved.set(pool, (reserved.get(pool) ?? 0) + count)
        },
      }
    },
  }
}
