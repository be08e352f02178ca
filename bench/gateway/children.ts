import type { ManagedChild } from '../../playground/child-process.ts'

/** The processes of a bench. */
export interface Children {
  add(child: ManagedChild): void
  /** Stops all of them. Others can be added afterwards. */
  stop(): Promise<void>
  /** @throws Error when one of them has ended by itself */
  expectRunning(): void
}

const graceMs = 15_000

export const createChildren = (): Children => {
  const children: ManagedChild[] = []
  return {
    add: (child) => void children.push(child),
    stop: async () => {
      await Promise.all([...children].reverse().map((child) => child.stop({ graceMs })))
      children.length = 0
    },
    expectRunning: () => {
      const ended = children.find((child) => !child.isRunning())
      if (ended !== undefined) throw new Error(`${ended.name} has ended:\n${ended.output().slice(-20).join('\n')}`)
    },
  }
}

/** On SIGINT or SIGTERM: calls `clear`, then ends the process. */
export const clearWhenInterrupted = (clear: () => Promise<void>): void => {
  const interrupt = (): void => {
    void clear().then(() => process.exit(130))
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
}
