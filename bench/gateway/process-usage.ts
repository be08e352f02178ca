import { readFile } from 'node:fs/promises'

/** The processes behind a target. `plugin`: the external processor. */
export const processNames = ['plugin', 'envoy', 'redis'] as const
export type ProcessName = (typeof processNames)[number]

/** What a process has used so far. */
export interface ProcessUsage {
  readonly cpuSeconds: number
  readonly residentBytes: number
}

/** Linux counts in these whatever its own clock is (USER_HZ). */
const ticksPerSecond = 100
const pageBytes = 4096

/** By process id. A process that a target does not have uses nothing. */
export const usagesOf = async (
  pids: Readonly<Partial<Record<ProcessName, number>>>,
): Promise<Readonly<Record<ProcessName, ProcessUsage>>> => {
  const [plugin, envoy, redis] = await Promise.all([usageOf(pids.plugin), usageOf(pids.envoy), usageOf(pids.redis)])
  return { plugin, envoy, redis }
}

/** From /proc/PID/stat: all threads, user and system time. */
export const usageOf = async (pid: number | undefined): Promise<ProcessUsage> => {
  if (pid === undefined) return { cpuSeconds: 0, residentBytes: 0 }
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The program's name stands in parentheses and may hold anything; the state follows it as the third field.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { cpuSeconds: (field(14) + field(15)) / ticksPerSecond, residentBytes: field(24) * pageBytes }
}
