import type { PodState, Pods } from '../../../src/routing/pod.ts'

/** A ready and idle pod, but for what the test says. */
export const podState = (address: string, sketch: Partial<PodState> = {}): PodState => ({
  address,
  ready: true,
  inFlight: 0,
  running: 0,
  waiting: 0,
  kvUsage: 0,
  ...sketch,
})

/** The pods `a:1`, `b:1` and `c:1`. */
export const threePods = (...[a, b, c]: readonly Partial<PodState>[]): Pods => [
  podState('a:1', a),
  podState('b:1', b),
  podState('c:1', c),
]

/** Gives the numbers one after the other, then from the start again. */
export const scriptedRandom = (...numbers: readonly number[]): (() => number) => {
  let next = 0
  return () => numbers[next++ % numbers.length] ?? 0
}
