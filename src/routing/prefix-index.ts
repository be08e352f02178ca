import { LRUCache } from 'lru-cache'
import type { PodAddress } from './pod.ts'

/** Pods of one session; above this, the one that served it longest ago is dropped. */
const maxPodsPerSession = 16

const nowhere: ReadonlyMap<PodAddress, number> = new Map()

/**
 * Which pods probably hold KV of which sessions, by the turns that this process routed. An estimate: engines evict on their own, and what a
 * pod really holds is found out when a turn reaches it.
 */
export class PrefixIndex {
  readonly #sessions: LRUCache<string, ReadonlyMap<PodAddress, number>>

  /** Above `maxSessions`, the least recently used session is dropped. */
  constructor({ maxSessions }: { readonly maxSessions: number }) {
    this.#sessions = new LRUCache({ max: maxSessions })
  }

  /** Tokens of a session by pod; empty when nothing is known. */
  tokensByPod(sessionKey: string): ReadonlyMap<PodAddress, number> {
    return this.#sessions.get(sessionKey) ?? nowhere
  }

  /** A turn of a session leaves KV of `tokens` in a pod. 0 changes nothing. */
  set(sessionKey: string, pod: PodAddress, tokens: number): void {
    if (!(tokens > 0)) return
    // A copy, since a turn under way may still read the map it received.
    const pods = new Map(this.#sessions.get(sessionKey))
    pods.delete(pod)
    pods.set(pod, tokens)
    const [oldest] = pods.keys()
    if (pods.size > maxPodsPerSession && oldest !== undefined) pods.delete(oldest)
    this.#sessions.set(sessionKey, pods)
  }

  delete(sessionKey: string): void {
    this.#sessions.delete(sessionKey)
  }
}
