import { hashOfId, SlotMap } from '../collections/slot-map.ts'
import { maxTurnsPerPod } from './max-turns-per-pod.ts'
import type { PodAddress } from './pod.ts'
import { type QueuedWork, WorkQueue } from './work-queue.ts'

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

interface Work extends QueuedWork {
  readonly startedMs: number
  waitMs: number
}

interface Pod {
  readonly queue: WorkQueue
  /** Of turns that have not ended, in the order of arrival. */
  readonly works: SlotMap<string, Work>
}

/** Pods come and go; what is known of those that have nothing to do is kept for so many. */
const maxIdlePods = 64

/** `nowMs` is a clock that never goes back. A turn that never ends is forgotten after `turnLeaseMs`. */
export const createWorkBacklog = (options: {
  readonly turnLeaseMs: number
  readonly nowMs: () => number
}): WorkBacklog => {
  const pods = new Map<PodAddress, Pod>()

  const podAt = (address: PodAddress): Pod => {
    const known = pods.get(address)
    if (known !== undefined) return known
    const works = new SlotMap<string, Work>({ hashOf: hashOfId, maxEntries: maxTurnsPerPod })
    const pod: Pod = { queue: new WorkQueue(), works }
    pods.set(address, pod)
    return pod
  }

  const forgetExpired = ({ works }: Pod, nowMs: number): void => {
    while ((works.oldest?.startedMs ?? nowMs) + options.turnLeaseMs <= nowMs) works.deleteOldest()
  }

  const end = (address: PodAddress, turnId: string, how: WorkEnd): number | undefined => {
    const pod = pods.get(address)
    const work = pod?.works.delete(turnId)
    if (pod === undefined || work === undefined) return undefined
    const now = options.nowMs()
    // What is done had everything before it done, too; what was abandoned takes only itself away.
    if (how === 'done') pod.queue.done(work, now)
    else pod.queue.abandoned(work, now)
    if (pod.works.size === 0 && pod.queue.freeMs <= now && pods.size > maxIdlePods) pods.delete(address)
    return work.waitMs
  }

  return {
    started: (address, turnId, workMs) => {
      const now = options.nowMs()
      const pod = podAt(address)
      const earlier = pod.works.get(turnId)
      if (earlier !== undefined) {
        // Nearly always it has only just come.
        if (pod.queue.resizedLast(earlier, workMs, now)) {
          earlier.waitMs = Math.max(0, pod.queue.freeMs - workMs - now)
          return earlier.waitMs
        }
        pod.queue.abandoned(earlier, now)
      }
      forgetExpired(pod, now)
      const work = { startedMs: now, waitMs: Math.max(0, pod.queue.freeMs - now), workMs, isPending: true }
      pod.queue.add(work, now)
      pod.works.set(turnId, work)
      return work.waitMs
    },
    ended: end,
    remainingMs: (address) => {
      const pod = pods.get(address)
      return pod === undefined ? 0 : Math.max(0, pod.queue.freeMs - options.nowMs())
    },
  }
}
