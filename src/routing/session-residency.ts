import { LRUCache } from 'lru-cache'
import { hashOfId, SlotMap } from '../collections/slot-map.ts'
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

/** A pod, and tokens by session. */
interface PodResidents {
  readonly address: PodAddress
  readonly tokens: LRUCache<string, number>
}

const nowhere: ReadonlyMap<PodAddress, number> = new Map()

export const createSessionResidency = (options: {
  /** Sessions that are remembered for each pod, at most. */
  readonly maxSessionsPerPod: number
  /** Tokens whose KV a pod has room for. Default: unknown, so that only the number of sessions limits. */
  readonly podCapacityTokens?: number | undefined
}): SessionResidency => {
  const { maxSessionsPerPod, podCapacityTokens } = options
  const createTokens = (): LRUCache<string, number> =>
    podCapacityTokens === undefined || podCapacityTokens === Number.POSITIVE_INFINITY
      ? new LRUCache({ max: maxSessionsPerPod })
      : new LRUCache({
          max: maxSessionsPerPod,
          maxSize: Math.max(1, Math.floor(podCapacityTokens)),
          sizeCalculation: (tokens) => Math.max(1, Math.ceil(tokens)),
        })
  const pods = new SlotMap<PodAddress, PodResidents>({ hashOf: hashOfId, maxEntries: maxPods })

  return {
    served: (sessionKey, address, tokens) => {
      if (!(tokens > 0)) return
      const pod = pods.get(address) ?? { address, tokens: createTokens() }
      pods.set(address, pod)
      pod.tokens.set(sessionKey, tokens)
    },
    tokensByPod: (sessionKey) => {
      let found: Map<PodAddress, number> | undefined
      pods.forEach((pod) => {
        const tokens = pod.tokens.peek(sessionKey)
        if (tokens === undefined) return
        found ??= new Map()
        found.set(pod.address, tokens)
      })
      return found ?? nowhere
    },
    forget: (sessionKey) => {
      pods.forEach(({ tokens }) => void tokens.delete(sessionKey))
    },
    forgetPod: (address) => {
      pods.delete(address)
    },
  }
}
