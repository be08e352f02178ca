import { createHash } from 'node:crypto'
import { leastLoaded, type PodState, type Pods, podLoad, type RandomSource, randomPod } from './pod.ts'
import type { PickPod } from './router.ts'
import { loadLimit, type Stickiness } from './stickiness.ts'

/**
 * `session-affinity`: the session's last pod; else the first pod in the affinity key's rendezvous order; else the least
 * loaded. If that pod is overloaded, a session goes to the least loaded one, another affinity key to the next in order.
 */
export const createSessionAffinityPolicy =
  (options: { readonly stickiness: Stickiness; readonly random: RandomSource }): PickPod =>
  (turn, pods) => {
    const least = leastLoaded(pods)
    const limit = loadLimit(options.stickiness, least[0])
    const isFree = (pod: PodState): boolean => podLoad(pod) <= limit
    const last = pods.find((pod) => pod.address === turn.lastPod)
    if (last !== undefined && isFree(last)) return last
    const ordered = last !== undefined || turn.affinityKey === undefined ? [] : rendezvousOrder(turn.affinityKey, pods)
    return ordered.find(isFree) ?? randomPod(least, options.random)
  }

/**
 * Orders pods by rendezvous (highest random weight) hashing: each key has its own fixed order, evenly spread over keys.
 * A pod that leaves moves only the keys that had it first, a new pod takes only its share. Stateless: gateways agree.
 */
export const rendezvousOrder = (affinityKey: string, pods: Pods): readonly PodState[] =>
  pods
    .map((pod) => ({ pod, weight: weightOf(affinityKey, pod.address) }))
    .sort((a, b) => b.weight - a.weight || (a.pod.address < b.pod.address ? -1 : 1))
    .map(({ pod }) => pod)

const weightOf = (affinityKey: string, address: string): number =>
  createHash('sha256').update(address).update('\0').update(affinityKey).digest().readUIntBE(0, 6)
