import { setImmediate } from 'node:timers/promises'

/** Resolves as soon as `condition` holds; the test's own timeout is the limit. */
export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await setImmediate()
}
