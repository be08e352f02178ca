import { readFile } from 'node:fs/promises'

/** What a process has used so far. */
export interface ProcessUsage {
  readonly cpuSeconds: number
  readonly residentBytes: number
}

/** Linux counts in these whatever its own clock is (USER_HZ). */
const ticksPerSecond = 100
const pageBytes = 4096

/** From /proc/PID/stat: all threads, user and system time. */
export const usageOf = async (pid: number): Promise<ProcessUsage> => {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The program's name stands in parentheses and may hold anything; the state follows it as the third field.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { cpuSeconds: (field(14) + field(15)) / ticksPerSecond, residentBytes: field(24) * pageBytes }
}
