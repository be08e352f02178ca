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

/** How much the median of the last quarter is above that of the quarter before it, as a share. */
export const growthOf = ({ samples }: Watched): number => {
  const quarter = Math.floor(samples.length / 4)
  const last = medianOf(samples.slice(-quarter))
  const before = medianOf(samples.slice(-2 * quarter, -quarter))
  return before === 0 ? 0 : last / before - 1
}

const medianOf = (samples: readonly ProcessSample[]): number => {
  const sorted = samples.map(({ residentBytes }) => residentBytes).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
