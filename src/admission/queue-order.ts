import { LRUCache } from 'lru-cache'
import TinyQueue from 'tinyqueue'
import type { QueuedWork } from './queued-work.ts'

/** Tenants whose last start is remembered. */
const maxTenants = 10_000

/**
 * Order of waiting work: by priority; then short work before long work, since a turn that takes milliseconds would wait
 * seconds behind cold prompts; then the tenant whose last start is longest ago; then by arrival. Long work is passed by
 * about as many starts as it found work ahead: so it waits at most twice as long as in the order of arrival.
 */
export const createQueueOrder = () => {
  const lastStarts = new LRUCache<string, number>({ max: maxTenants })
  const arrivals = new WeakMap<QueuedWork, Arrival>()
  /** The last start of each tenant before this one. */
  const startsBefore = new WeakMap<QueuedWork, number>()
  let starts = 0
  let arrived = 0

  const withKey = <T extends { readonly work: QueuedWork }>(waiter: T): Keyed<T> => {
    const { isShort, priority, tenant, arrivedMs } = waiter.work
    const { dueAtStart = 0, ordinal = 0 } = arrivals.get(waiter.work) ?? {}
    const passed = isShort || starts >= dueAtStart ? 0 : 1
    return { waiter, priority, passed, lastStart: lastStarts.peek(tenant) ?? 0, arrivedMs, ordinal }
  }

  return {
    /** Work arrived, and found so much other work waiting. Work that comes back keeps its place. */
    arrived: (work: QueuedWork, waiting: number): void => {
      arrived += 1
      if (!arrivals.has(work)) arrivals.set(work, { ordinal: arrived, dueAtStart: starts + 2 * (waiting + 1) })
    },
    /** Work started. */
    started: (work: QueuedWork): void => {
      starts += 1
      startsBefore.set(work, lastStarts.get(work.tenant) ?? 0)
      lastStarts.set(work.tenant, starts)
    },
    /** Work that started found no room: it is the turn of its tenant as before, and nobody was passed. */
    withdrawn: (work: QueuedWork): void => {
      starts -= 1
      lastStarts.set(work.tenant, startsBefore.get(work) ?? 0)
    },
    /** The waiters in their order, the first to be taken out first. A start changes the order: sort them again. */
    sorted: <T extends { readonly work: QueuedWork }>(waiters: readonly T[]) => {
      const heap = new TinyQueue(waiters.map(withKey), compare)
      return {
        next: (): T | undefined => heap.pop()?.waiter,
        rest: (): readonly T[] => heap.data.map(({ waiter }) => waiter),
      }
    },
    /** The last of the waiters in their order. */
    last: <T extends { readonly work: QueuedWork }>(waiters: readonly T[]): T | undefined =>
      new TinyQueue(waiters.map(withKey), (a, b) => compare(b, a)).peek()?.waiter,
  }
}

interface Arrival {
  readonly ordinal: number
  /** Number of the start after which long work is not passed any more. */
  readonly dueAtStart: number
}

interface Keyed<T> {
  readonly waiter: T
  readonly priority: number
  readonly passed: number
  readonly lastStart: number
  readonly arrivedMs: number
  /** Of work that arrived at one time. */
  readonly ordinal: number
}

const compare = <T>(a: Keyed<T>, b: Keyed<T>): number =>
  a.priority - b.priority ||
  a.passed - b.passed ||
  a.lastStart - b.lastStart ||
  a.arrivedMs - b.arrivedMs ||
  a.ordinal - b.ordinal
