import { type PodState, podLoad } from './pod.ts'

/**
 * When a session stays with its pod. A pod is overloaded when its load exceeds `factor` times the least load of any pod
 * plus `margin`; a turn then goes to another pod, although its KV has to be loaded there.
 */
export interface Stickiness {
  /** At least 1. */
  readonly factor: number
  /** Requests, at least 0. */
  readonly margin: number
}

/** The load above which a pod is overloaded; `least` is a pod of the least load. */
export const loadLimit = ({ factor, margin }: Stickiness, least: PodState): number => factor * podLoad(least) + margin
