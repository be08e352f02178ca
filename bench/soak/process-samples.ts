import { readdir } from 'node:fs/promises'
import type { ManagedChild } from '../../playground/child-process.ts'
import { usageOf } from '../gateway/process-usage.ts'

/** Memory and open files of a process. */
export interface ProcessSample {
  readonly residentBytes: number
  readonly handles: number
}

/** Undefined: it does not run now. */
export const sampleOf = async (child: ManagedChild): Promise<ProcessSample | undefined> => {
  try {
    const [{ residentBytes }, files] = await Promise.all([usageOf(child.pid), readdir(`/proc/${child.pid}/fd`)])
    return { residentBytes, handles: files.length }
  } catch {
    return undefined
  }
}

/** Samples of one process over a soak. */
export interface Watched {
  readonly name: string
  readonly child: () => ManagedChild
  readonly samples: ProcessSample[]
}

/** The least of each quarter of the values, in their order; `Infinity` where it has none. */
export const leastOfQuarters = (values: readonly number[]): readonly number[] => {
  const quarter = Math.floor(values.length / 4)
  return [0, 1, 2, 3].map((index) => Math.min(...values.slice(index * quarter, (index + 1) * quarter)))
}

/** How much the least of the last quarter is above that of the quarter before it, as a share: what is kept. */
export const growthOf = (values: readonly number[]): number => {
  const [before = 0, last = Number.NaN] = leastOfQuarters(values).slice(-2)
  return before > 0 && Number.isFinite(last) ? last / before - 1 : 0
}
