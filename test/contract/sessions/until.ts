import { setTimeout as wait } from 'node:timers/promises'

/** Waits for a condition; the test's own time limit ends a wait in vain. */
export const until = async (condition: () => Promise<boolean>): Promise<void> => {
  while (!(await condition())) await wait(10)
}
