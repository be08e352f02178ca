import type { EventSources } from './event-sources.ts'
import type { KvEvents } from './kv-events.ts'
import { loadZeromq } from './load-zeromq.ts'
import { followPod, type PodFollower, type PodFollowerOptions } from './pod-follower.ts'

export interface ZmqKvEventsOptions extends PodFollowerOptions {
  /** The pods to follow at this moment, as `host:port`. Asked every `pollMs`. */
  readonly pods: () => readonly string[]
  /** Closed by `stop`. */
  readonly sources: EventSources
  /** How often `pods` is asked, milliseconds. Default 1,000. */
  readonly pollMs?: number
}

/** Follows vLLM's KV events over ZeroMQ. @throws Error when the optional package zeromq is missing */
export const createZmqKvEvents = (options: ZmqKvEventsOptions): KvEvents => {
  loadZeromq()
  const { sources, pollMs = 1_000 } = options
  const followers = new Map<string, PodFollower>()

  const followPods = (): void => {
    const pods = new Set(options.pods())
    for (const [pod, follower] of followers) {
      if (pods.has(pod)) continue
      followers.delete(pod)
      void follower.close()
    }
    for (const pod of pods) if (!followers.has(pod)) followers.set(pod, followPod(pod, options))
  }
  followPods()
  const timer = setInterval(followPods, pollMs)

  return {
    follow: async (pod, signal) => {
      followPods()
      await followers.get(pod)?.receive(signal)
    },
    turnTokens: async (pod, turn, signal) => followers.get(pod)?.turnTokens(turn, signal),
    residentTokens: (pod, turnId) => followers.get(pod)?.residentTokens(turnId) ?? 0,
    isLive: (pod) => followers.get(pod)?.isLive() ?? false,
    stop: async () => {
      clearInterval(timer)
      await Promise.all([...followers.values()].map((follower) => follower.close()))
      await sources.close()
    },
  }
}
