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

/** Beyond it the pod that was met first is forgotten. */
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
  const pods = new Map<PodAddress, PodResidents>()

  const meet = (address: PodAddress): PodResidents => {
    const pod: PodResidents = { address, tokens: createTokens() }
    pods.set(address, pod)
    const [first] = pods.keys()
    if (pods.size > maxPods && first !== undefined) pods.delete(first)
    return pod
  }

  return {
    served: (sessionKey, address, tokens) => {
      if (!(tokens > 0)) return
      const pod = pods.get(address) ?? meet(address)
      pod.tokens.set(sessionKey, tokens)
    },
    tokensByPod: (sessionKey) => {
      let found: Map<PodAddress, number> | undefined
      for (const { address, tokens } of pods.values()) {
        const held = tokens.peek(sessionKey)
        if (held === undefined) continue
        found ??= new Map()
        found.set(address, held)
      }
      return found ?? nowhere
    },
    forget: (sessionKey) => {
      for (const { tokens } of pods.values()) tokens.delete(sessionKey)
    },
    forgetPod: (address) => {
      pods.delete(address)
    },
  }
}
