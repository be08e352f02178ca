import type { RandomSource } from '../../src/routing/load-policies.ts'

/** The same numbers for the same seed, so that a replay gives the same result each time (mulberry32). */
export const createSeededRandom = (seed: number): RandomSource => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const first = Math.imul(state ^ (state >>> 15), state | 1)
    const second = (first + Math.imul(first ^ (first >>> 7), first | 61)) ^ first
    return ((second ^ (second >>> 14)) >>> 0) / 4_294_967_296
  }
}
