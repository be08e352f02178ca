import type { PodState } from '../../../src/routing/pod.ts'

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

/** Gives the numbers one after the other, then from the start again. */
export const scriptedRandom = (...numbers: readonly number[]): (() => number) => {
  let next = 0
  return () => numbers[next++ % numbers.length] ?? 0
}
