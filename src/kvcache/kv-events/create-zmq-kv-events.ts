import type { KvLog } from '../kv-log.ts'
import type { EventSources } from './event-sources.ts'
import type { KvEvents } from './kv-events.ts'
import { loadZeromq } from './load-zeromq.ts'
import { followPod, type PodFollower } from './pod-follower.ts'

export interface ZmqKvEventsOptions {
  /** The pods to follow at this moment, as `host:port`. Asked every `pollMs`. */
  readonly pods: () => readonly string[]
  /** Where each pod publishes. Closed by `stop`. */
  readonly sources: EventSources
  readonly log: KvLog
  /** How often `pods` is asked, milliseconds. Default 1,000. */
  readonly pollMs?: number
  /** How often a pod is asked where it publishes, milliseconds. Default 5,000. */
  readonly askEveryMs?: number
}

/** Follows vLLM's KV events over ZeroMQ. @throws Error when the optional package zeromq is missing */
export const createZmqKvEvents = (options: ZmqKvEventsOptions): KvEvents => {
  loadZeromq()
  const { sources, log, pollMs = 1_000, askEveryMs = 5_000 } = options
  const followers = new Map<string, PodFollower>()

  const followPods = (): void => {
    const pods = new Set(options.pods())
    for (const [pod, follower] of followers) {
      if (pods.has(pod)) continue
      followers.delete(pod)
      void follower.close()
    }
    for (const pod of pods) if (!followers.has(pod)) followers.set(pod, followPod({ pod, sources, askEveryMs, log }))
  }
  followPods()
  const timer = setInterval(followPods, pollMs)

  return {
    turnTokens: async (pod, turn, signal) => followers.get(pod)?.turnTokens(turn, signal),
    residentTokens: (pod, turnId) => followers.get(pod)?.residentTokens(turnId) ?? 0,
    isLive: (pod) => followers.get(pod)?.isLive ?? false,
    stop: async () => {
      clearInterval(timer)
      await Promise.all([...followers.values()].map((follower) => follower.close()))
      await sources.close()
    },
  }
}
