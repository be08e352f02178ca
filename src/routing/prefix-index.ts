import { LRUCache } from 'lru-cache'
import type { PodAddress } from './pod.ts'

/**
 * Which pods probably hold KV of which sessions, by the turns that this process routed. An estimate: engines evict on their own, and what a
 * pod really holds is found out when a turn reaches it.
 */
export interface PrefixIndex {
  /** Tokens of a session by pod; empty when nothing is known. */
  tokensByPod(sessionKey: string): ReadonlyMap<PodAddress, number>
  /** A turn of a session leaves KV of `tokens` in a pod. 0 changes nothing. */
  set(sessionKey: string, pod: PodAddress, tokens: number): void
  delete(sessionKey: string): void
}

/** Pods of one session; above this, the one that served it longest ago is dropped. */
const maxPodsPerSession = 16

const nowhere: ReadonlyMap<PodAddress, number> = new Map()

/** Above `maxSessions`, the least recently used session is dropped. */
export const createPrefixIndex = (options: { readonly maxSessions: number }): PrefixIndex => {
  const sessions = new LRUCache<string, ReadonlyMap<PodAddress, number>>({ max: options.maxSessions })
  return {
    tokensByPod: (sessionKey) => sessions.get(sessionKey) ?? nowhere,
    set: (sessionKey, pod, tokens) => {
      if (!(tokens > 0)) return
      // A copy, since a turn under way may still read the map it received.
      const pods = new Map(sessions.get(sessionKey))
      pods.delete(pod)
      pods.set(pod, tokens)
      const [oldest] = pods.keys()
      if (pods.size > maxPodsPerSession && oldest !== undefined) pods.delete(oldest)
      sessions.set(sessionKey, pods)
    },
    delete: (sessionKey) => void sessions.delete(sessionKey),
  }
}
