import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** The kernel's letter for what a process does (`S` sleeps, `T` is stopped, `Z` has ended), or undefined without one. */
export function processState(pid: number): string | undefined {
  try {
    return /\) (\S) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Whether a process runs. One that has ended and that nobody has asked about yet does not. */
export function isAlive(pid: number): boolean {
  return !['Z', 'X', undefined].includes(processState(pid))
}

/** Waits for a condition. @throws Error when it does not come true within ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(10_000)
  while (!(await condition())) {
    deadline.throwIfAborted()
    await delay(10)
  }
}
