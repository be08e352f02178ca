import { untilAborted } from '../async/deadline.ts'

/** Loads that several turns of this process may wait for at once. A load goes on when those who waited have left. */
export interface SharedLoads<T> {
  /** What the load of this name resolves to; `onAbort()` when the signal fires before. */
  run<U>(
    name: string,
    load: () => Promise<T>,
    wait: { readonly signal: AbortSignal; readonly onAbort: () => U },
  ): Promise<T | U>
}

export const createSharedLoads = <T>(): SharedLoads<T> => {
  const running = new Map<string, Promise<T>>()
  return {
    run: (name, load, { signal, onAbort }) => {
      let work = running.get(name)
      if (work === undefined) {
        work = load().finally(() => running.delete(name))
        running.set(name, work)
        // Nobody may be waiting any more when it fails.
        work.catch(() => {})
      }
      return untilAborted(work, signal, onAbort)
    },
  }
}
