import { readFileSync } from 'node:fs'

/** The kernel's letter for the state of a process (`S` sleeps, `T` is stopped, `Z` has ended); undefined: none. */
function processState(pid: number): string | undefined {
  try {
    return /\) (\S) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Whether a process runs. A zombie does not. */
export function isAlive(pid: number): boolean {
  return !['Z', 'X', undefined].includes(processState(pid))
}
