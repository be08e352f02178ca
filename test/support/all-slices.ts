import type { SlicedWork } from '../../src/async/slices.ts'

/** The result of work that yields, done without a pause, and the number of its slices. */
export const countSlices = <T>(work: SlicedWork<T>): { readonly result: T; readonly slices: number } => {
  for (let slices = 1; ; slices += 1) {
    const step = work.next()
    if (step.done === true) return { result: step.value, slices }
  }
}

/** The result of work that yields. Throws what the work throws. */
export const allSlices = <T>(work: SlicedWork<T>): T => countSlices(work).result
