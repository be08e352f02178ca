import { createSlices } from '../../async/slices.ts'
import { loadZeromq } from './load-zeromq.ts'
import { followPod, type PodFollower, type PodFollowerOptions, type ReportedTurn } from './pod-follower.ts'

/**
 * What vLLM pods report over ZeroMQ of the KV blocks in their own caches. Memory is bounded. A report that was missed
 * leaves a turn unknown; the session's next turn reports all of its blocks again.
 */
export interface KvEvents {
  /** Resolves once the pod's events are received, or it publishes none. @throws if that fails or the signal fires */
  follow(pod: string, signal: AbortSignal): Promise<void>
  /**
   * Tokens of the whole KV blocks that a turn filled or reused, from its first token on. Resolves when at least
   * `minTokens` (and at least one) are reported; when the signal fires, to those reported by then. Undefined: none.
   */
  turnTokens(pod: string, turn: ReportedTurn, signal: AbortSignal): Promise<Uint32Array | undefined>
  /**
   * How many of these tokens lie in the pod's own cache now, without a gap from the first one on; in each data parallel
   * rank of it, since the next turn may meet any. 0 where it is unknown.
   */
  residentTokens(pod: string, turnId: string): number
  /** Whether the pod is configured, and its events are received now, without a break since a time of the clock. */
  isLive(pod: string, sinceMs?: number): boolean
  /** Closes all connections; pending waits resolve with what is known. */
  stop(): Promise<void>
}

/** @throws Error when the optional package zeromq is missing */
export const createKvEvents = (
  options: Omit<PodFollowerOptions, 'slices'> & {
    /** How long a pod that has left the list is followed: turns on it end meanwhile. */
    readonly maxTurnMs: number
    /** How often `pods` is asked, milliseconds. Default 1,000. */
    readonly pollMs?: number
  },
): KvEvents => {
  loadZeromq()
  const { pods, maxTurnMs, pollMs = 1_000 } = options
  const slices = createSlices()
  const followed = new Map<string, { readonly follower: PodFollower; readonly listedMs: number }>()

  const followPods = (): void => {
    const nowMs = performance.now()
    for (const pod of pods()) {
      const follower = followed.get(pod)?.follower ?? followPod(pod, { ...options, slices })
      followed.set(pod, { follower, listedMs: nowMs })
    }
    for (const [pod, { follower, listedMs }] of followed) {
      if (nowMs - listedMs <= maxTurnMs) continue
      followed.delete(pod)
      void follower.close()
    }
  }
  followPods()
  const timer = setInterval(followPods, pollMs)

  return {
    follow: async (pod, signal) => {
      followPods()
      await followed.get(pod)?.follower.receive(signal)
    },
    turnTokens: async (pod, turn, signal) => followed.get(pod)?.follower.turnTokens(turn, signal),
    residentTokens: (pod, turnId) => followed.get(pod)?.follower.residentTokens(turnId) ?? 0,
    isLive: (pod, sinceMs) => pods().includes(pod) && followed.get(pod)?.follower.isLive(sinceMs) === true,
    stop: async () => {
      clearInterval(timer)
      await Promise.all([...followed.values()].map(({ follower }) => follower.close()))
    },
  }
}
