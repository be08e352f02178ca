import { LRUCache } from 'lru-cache'
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
  /** Number of the start after which long work is not passed any more. */
  const dueAtStart = new WeakMap<QueuedWork, number>()
  /** The last start of each tenant before this one. */
  const startsBefore = new WeakMap<QueuedWork, number>()
  let starts = 0

  const keyOf = (work: QueuedWork): readonly number[] => {
    const { priority, isShort, tenant, arrivedMs } = work
    const isPassed = !isShort && starts < (dueAtStart.get(work) ?? 0)
    return [priority, isPassed ? 1 : 0, lastStarts.get(tenant) ?? 0, arrivedMs]
  }

  return {
    /** Work arrived, and found so much other work waiting. Work that comes back keeps its place. */
    arrived: (work: QueuedWork, waiting: number): void => {
      if (!dueAtStart.has(work)) dueAtStart.set(work, starts + 2 * (waiting + 1))
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
    /** The waiters in their order, in an array of its own. Of equals, the first stays first. */
    sorted: <T extends { readonly work: QueuedWork }>(waiters: readonly T[]): T[] =>
      waiters
        .map((waiter) => ({ waiter, key: keyOf(waiter.work) }))
        .sort((a, b) => compare(a.key, b.key))
        .map(({ waiter }) => waiter),
  }
}

const compare = (a: readonly number[], b: readonly number[]): number => {
  const at = a.findIndex((value, index) => value !== b[index])
  return (a[at] ?? 0) - (b[at] ?? 0)
}
