import { pause } from './deadline.ts'

/** Work that runs at once and then at each interval, one run at a time, until it is stopped. It must not reject. */
export interface Loop {
  /** Starts the first run, and resolves when it has ended. */
  start(): Promise<void>
  /** Aborts the signal of the work. Resolves when the run under way has ended; no other one follows. */
  stop(): Promise<void>
}

export const createLoop = (options: {
  readonly work: (signal: AbortSignal) => Promise<void>
  /** From the start of one run to the start of the next, milliseconds. A run that takes longer is followed at once. */
  readonly intervalMs: number
}): Loop => {
  const stopping = new AbortController()
  const { signal } = stopping
  let nextRunMs = 0
  let running: Promise<void> | undefined

  const run = (): Promise<void> => {
    nextRunMs = performance.now() + options.intervalMs
    return options.work(signal)
  }

  const runAgain = async (): Promise<void> => {
    while (!signal.aborted) {
      await pause(Math.max(0, nextRunMs - performance.now()), signal)
      if (!signal.aborted) await run()
    }
  }

  return {
    start: () => {
      const first = run()
      running = first.then(runAgain)
      return first
    },
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
