import { createHash } from 'node:crypto'
import type { PodState } from './pod.ts'

/**
 * Orders pods by rendezvous (highest random weight) hashing: every key has its own fixed order, evenly spread over keys. A pod that goes
 * moves only the keys that had it first, a pod that comes takes over only its share. No state, so gateways side by side agree.
 */
export const rendezvousOrder = (
  affinityKey: string,
  pods: readonly [PodState, ...PodState[]],
): readonly [PodState, ...PodState[]] => {
  const [first, ...others] = pods
    .map((pod) => ({ pod, weight: weightOf(affinityKey, pod.address) }))
    .sort((a, b) => b.weight - a.weight || (a.pod.address < b.pod.address ? -1 : 1))
    .map(({ pod }) => pod)
  return [first ?? pods[0], ...others]
}

const weightOf = (affinityKey: string, address: string): number =>
  createHash('sha256').update(address).update('\0').update(affinityKey).digest().readUIntBE(0, 6)
