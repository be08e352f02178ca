import type { PodState } from './pod.ts'

/**
 * How many requests a pod has to deal with, as far as is known: this gateway's turns, exact to the moment, and the requests of others
 * that the engine told of when it was last asked.
 */
export const podLoad = (pod: PodState): number =>
  pod.inFlight + Math.max(0, pod.running + pod.waiting - (pod.inFlightAtRead ?? 0))

/** The pods with the least load: at least one. */
export const leastLoaded = (pods: readonly [PodState, ...PodState[]]): readonly [PodState, ...PodState[]] => {
  const [first, ...others] = pods
  let best: [PodState, ...PodState[]] = [first]
  let bestLoad = podLoad(first)
  for (const pod of others) {
    const load = podLoad(pod)
    if (load < bestLoad) {
      best = [pod]
      bestLoad = load
    } else if (load === bestLoad) {
      best.push(pod)
    }
  }
  return best
}
