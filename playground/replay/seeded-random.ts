import type { RandomSource } from '../../src/routing/pod.ts'

const seed = 20_250_225

/** The same numbers each time, so that a replay gives the same result (mulberry32). */
export const createSeededRandom = (): RandomSource => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const first = Math.imul(state ^ (state >>> 15), state | 1)
    const second = (first + Math.imul(first ^ (first >>> 7), first | 61)) ^ first
    return ((second ^ (second >>> 14)) >>> 0) / 4_294_967_296
  }
}
