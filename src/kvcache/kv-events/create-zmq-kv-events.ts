import type { KvLog } from '../kv-log.ts'
import type { KvEventSource } from './kv-event-source.ts'
import type { KvEvents } from './kv-events.ts'
import { loadZeromq } from './load-zeromq.ts'
import { createPodWatch, type PodWatch } from './pod-watch.ts'

export interface ZmqKvEventsOptions {
  /** The pods to follow at this moment, as `host:port`. Asked again and again. */
  readonly pods: () => readonly string[]
  /** Where a pod publishes; empty: nowhere. May throw; then the pod is asked again. */
  readonly sourcesOf: (pod: string, signal: AbortSignal) => Promise<readonly KvEventSource[]>
  readonly log: KvLog
  /**
   * Blocks kept in mind per pod, at about half a kilobyte each. Default 400,000: 6.4 million tokens in blocks of 16. Beyond it, the chains that were
   * told of the longest time ago are forgotten from their ends: what is forgotten counts as not held, and what a turn adds to it stays unknown.
   */
  readonly maxBlocksPerPod?: number
  /** How often `pods` is asked, milliseconds. Default 1,000. */
  readonly pollMs?: number
  /** How long an engine may keep silent during a replay, milliseconds. Default 5,000. */
  readonly replaySilenceMs?: number
  /** How often an engine is asked whether its last events arrived, milliseconds. Default 30,000. */
  readonly tailCheckMs?: number
  /** How often a pod is asked whether it still publishes in the same places, milliseconds. Default 60,000. */
  readonly sourcesCheckMs?: number
  /** How soon a pod that publishes nowhere is asked again, milliseconds; each time twice as late, up to `sourcesCheckMs`. Default 2,000. */
  readonly retryMs?: number
}

/** Follows vLLM's KV events over ZeroMQ. @throws Error when the optional package zeromq is missing */
export const createZmqKvEvents = (options: ZmqKvEventsOptions): KvEvents => {
  loadZeromq()
  const { pollMs = 1_000 } = options
  const watches = new Map<string, PodWatch>()
  const leaving = new Set<Promise<void>>()
  let stopped = false

  const dismiss = (pod: string, watch: PodWatch): void => {
    watches.delete(pod)
    const gone: Promise<void> = watch.close().finally(() => leaving.delete(gone))
    leaving.add(gone)
  }

  const followPods = (): void => {
    if (stopped) return
    const pods = new Set(options.pods())
    for (const [pod, watch] of watches) if (!pods.has(pod)) dismiss(pod, watch)
    const now = performance.now()
    for (const pod of pods) {
      const watch = watches.get(pod) ?? newWatch(pod, options)
      watches.set(pod, watch)
      watch.tick(now)
    }
  }

  followPods()
  const timer = setInterval(followPods, pollMs)

  return {
    residentTokens: (pod, prefix) => watches.get(pod)?.residentTokens(prefix),
    turnTokens: async (pod, turn, signal) => {
      // A turn may run on a pod that has only just appeared.
      if (!watches.has(pod)) followPods()
      return watches.get(pod)?.turnTokens(turn, signal)
    },
    isLive: (pod) => watches.get(pod)?.live ?? false,
    stop: async () => {
      stopped = true
      clearInterval(timer)
      for (const [pod, watch] of watches) dismiss(pod, watch)
      await Promise.all(leaving)
    },
  }
}

const newWatch = (pod: string, options: ZmqKvEventsOptions): PodWatch =>
  createPodWatch({
    pod,
    sourcesOf: options.sourcesOf,
    log: options.log,
    maxBlocks: options.maxBlocksPerPod ?? 400_000,
    replaySilenceMs: options.replaySilenceMs ?? 5_000,
    tailCheckMs: options.tailCheckMs ?? 30_000,
    sourcesCheckMs: options.sourcesCheckMs ?? 60_000,
    retryMs: options.retryMs ?? 2_000,
  })
