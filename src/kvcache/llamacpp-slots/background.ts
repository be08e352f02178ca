import type { KvLog } from '../kv-log.ts'

/** Work that goes on after its caller has been answered. */
export interface Background {
  /** Follows `work` to its end; a fault is logged. */
  run(name: string, work: Promise<unknown>): void
  /** Resolves when nothing is left. */
  drained(): Promise<void>
}

export const createBackground = (log: KvLog): Background => {
  const running = new Set<Promise<void>>()
  return {
    run: (name, work) => {
      const tracked = work.then(
        () => {
          running.delete(tracked)
        },
        (err: unknown) => {
          running.delete(tracked)
          log.warn('background work failed', { work: name, err })
        },
      )
      running.add(tracked)
    },
    drained: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
