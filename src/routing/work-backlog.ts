import type { PodAddress } from './pod.ts'

/** How a turn's work at a pod ended: it was done, or the turn left before that may have begun. */
export type WorkEnd = 'done' | 'abandoned'

/**
 * How long each pod is still busy with what turns asked of it, by prediction: pods do one thing after the other, in the order of arrival.
 * Nobody tells when a piece of work is done, only when its turn has ended; so the work runs down by the clock, and is corrected then.
 */
export interface WorkBacklog {
  /**
   * Adds work of `workMs`; what the same turn asked of the pod before goes. Returns how long it will wait for the work that is already
   * there, milliseconds.
   */
  started(address: PodAddress, turnId: string, workMs: number): number
  /** Returns what `started` did for the turn; undefined when it is not known here. */
  ended(address: PodAddress, turnId: string, end: WorkEnd): number | undefined
  /** Milliseconds until all that is known will be done. */
  remainingMs(address: PodAddress): number
}

interface Work {
  readonly startedMs: number
  readonly waitMs: number
  readonly workMs: number
  /** When it will be done. */
  doneMs: number
}

interface Queue {
  /** When all work will be done. */
  freeMs: number
  /** In the order of arrival. */
  readonly works: Map<string, Work>
}

/** `nowMs` is a clock that never goes back. A turn that never ends is forgotten after `turnLeaseMs`. */
export const createWorkBacklog = (options: {
  readonly turnLeaseMs: number
  readonly nowMs: () => number
}): WorkBacklog => {
  const queues = new Map<PodAddress, Queue>()

  const queueOf = (address: PodAddress): Queue => {
    const known = queues.get(address)
    if (known !== undefined) return known
    const queue: Queue = { freeMs: 0, works: new Map() }
    queues.set(address, queue)
    return queue
  }

  const forgetExpired = (queue: Queue, nowMs: number): void => {
    for (const [turnId, work] of queue.works) {
      if (work.startedMs + options.turnLeaseMs > nowMs) return
      queue.works.delete(turnId)
    }
  }

  const end = (address: PodAddress, turnId: string, how: WorkEnd): number | undefined => {
    const queue = queues.get(address)
    const work = queue?.works.get(turnId)
    if (queue === undefined || work === undefined) return undefined
    const now = options.nowMs()
    const leftMs = Math.max(0, work.doneMs - now)
    // What is done had everything before it done, too; what was abandoned takes only itself away.
    const gainMs = how === 'done' ? leftMs : Math.min(leftMs, work.workMs)
    let isAhead = true
    for (const other of queue.works.values()) {
      if (other === work) isAhead = false
      else if (!isAhead) other.doneMs -= gainMs
      else if (how === 'done') other.doneMs = Math.min(other.doneMs, now)
    }
    queue.works.delete(turnId)
    queue.freeMs -= gainMs
    if (queue.works.size === 0 && queue.freeMs <= now) queues.delete(address)
    return work.waitMs
  }

  return {
    started: (address, turnId, workMs) => {
      end(address, turnId, 'abandoned')
      const now = options.nowMs()
      const queue = queueOf(address)
      forgetExpired(queue, now)
      const waitMs = Math.max(0, queue.freeMs - now)
      queue.freeMs = now + waitMs + workMs
      queue.works.set(turnId, { startedMs: now, waitMs, workMs, doneMs: queue.freeMs })
      return waitMs
    },
    ended: end,
    remainingMs: (address) => Math.max(0, (queues.get(address)?.freeMs ?? 0) - options.nowMs()),
  }
}
