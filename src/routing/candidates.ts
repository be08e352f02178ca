import { leastLoaded, type PodState, type Pods, podLoad } from './pod.ts'
import type { RoutingInput } from './router.ts'
import { serviceOf } from './served-models.ts'
import { loadLimit, type Stickiness } from './session-affinity.ts'

/** The pods that may serve a turn, or why there is none. */
export type Candidates =
  /** The policy chooses among `preferred`; the others of `pods` are for retries. */
  | { readonly kind: 'pods'; readonly pods: Pods; readonly preferred: Pods }
  | { readonly kind: 'no-ready-pod' }
  /** No pod serves the model of the turn, ready or not. */
  | { readonly kind: 'unknown-model' }

/**
 * Ready pods that list the model of the turn; else ready pods that may answer any name, or whose models are unknown. A
 * turn without a model has all ready pods. Pods that run the turn's LoRA adapter are preferred while they are not
 * overloaded, except by a session that has a pod: an adapter loads in less time than a prompt is computed.
 */
export const candidatesFor = (
  allPods: readonly PodState[],
  turn: Pick<RoutingInput, 'model' | 'lastPod' | 'subset'>,
  stickiness: Stickiness,
): Candidates => {
  const { model, subset } = turn
  const pods = subset === undefined ? allPods : allPods.filter(({ address }) => isIn(subset, address))
  if (model === undefined) return readyOf(pods)
  if (pods.length > 0 && serviceOf(pods, model) === 'no') return { kind: 'unknown-model' }
  const listing = readyOf(pods.filter(({ models }) => models?.names.has(model)))
  const served =
    listing.kind === 'pods' ? listing : readyOf(pods.filter(({ models }) => models?.answersAnyName !== false))
  if (served.kind !== 'pods' || turn.lastPod !== undefined) return served
  const limit = loadLimit(stickiness, leastLoaded(served.pods)[0])
  const running = served.pods.filter((pod) => pod.activeAdapters?.has(model) && podLoad(pod) <= limit)
  return isNotEmpty(running) ? { ...served, preferred: running } : served
}

const isIn = (subset: readonly string[], address: string): boolean =>
  subset.includes(address) || subset.includes(address.slice(0, address.lastIndexOf(':')))

const readyOf = (pods: readonly PodState[]): Exclude<Candidates, { readonly kind: 'unknown-model' }> => {
  const ready = pods.filter((pod) => pod.ready)
  return isNotEmpty(ready) ? { kind: 'pods', pods: ready, preferred: ready } : { kind: 'no-ready-pod' }
}

const isNotEmpty = (pods: readonly PodState[]): pods is Pods => pods.length > 0
