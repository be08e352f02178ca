import { LRUCache } from 'lru-cache'
import type { PodAddress } from './pod.ts'

/**
 * Which pods probably still hold KV of which sessions, by the turns that this process saw end. A guess: engines evict by themselves, so
 * each pod is taken to keep what was used there last. What really lies in a pod is found out when a turn gets there.
 */
export interface SessionResidency {
  /** A turn of a session ended in a pod and left KV of so many tokens there. */
  served(sessionKey: string, address: PodAddress, tokens: number): void
  /** Pods that hold something of the session, and how many of its tokens. */
  tokensByPod(sessionKey: string): ReadonlyMap<PodAddress, number>
  /** The session is gone, or starts anew. */
  forget(sessionKey: string): void
  /** A pod has lost everything. */
  forgetPod(address: PodAddress): void
}

const maxPods = 1000

const nowhere: ReadonlyMap<PodAddress, number> = new Map()

export const createSessionResidency = (options: {
  /** Sessions that are remembered for each pod, at most. */
  readonly maxSessionsPerPod: number
  /** Tokens whose KV a pod has room for. Default: unknown, so that only the number of sessions limits. */
  readonly podCapacityTokens?: number | undefined
}): SessionResidency => {
  const { maxSessionsPerPod, podCapacityTokens } = options
  const createPod = (): LRUCache<string, number> =>
    podCapacityTokens === undefined || podCapacityTokens === Number.POSITIVE_INFINITY
      ? new LRUCache({ max: maxSessionsPerPod })
      : new LRUCache({
          max: maxSessionsPerPod,
          maxSize: Math.max(1, Math.floor(podCapacityTokens)),
          sizeCalculation: (tokens) => Math.max(1, Math.ceil(tokens)),
        })
  const pods = new LRUCache<PodAddress, LRUCache<string, number>>({ max: maxPods })

  return {
    served: (sessionKey, address, tokens) => {
      if (!(tokens > 0)) return
      const known = pods.get(address)
      const pod = known ?? createPod()
      if (known === undefined) pods.set(address, pod)
      pod.set(sessionKey, tokens)
    },
    tokensByPod: (sessionKey) => {
      let found: Map<PodAddress, number> | undefined
      pods.forEach((pod, address) => {
        const tokens = pod.peek(sessionKey)
        if (tokens === undefined) return
        found ??= new Map()
        found.set(address, tokens)
      })
      return found ?? nowhere
    },
    forget: (sessionKey) => {
      for (const pod of pods.values()) pod.delete(sessionKey)
    },
    forgetPod: (address) => {
      pods.delete(address)
    },
  }
}
