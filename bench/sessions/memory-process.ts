/** The memory store in a process of its own, so that nothing else is in its heap. Does what its parent asks, one thing after the other. */
import { createMemorySessionStore } from '../../src/sessions/memory/create-memory-session-store.ts'
import { measureExpiry } from './expiry.ts'
import { fill } from './fill.ts'
import { measureOperations } from './measure-operations.ts'
import type { MemoryAnswer, MemoryTask } from './memory-store.ts'

const series = 'memory'
const roomForMore = 250_000
const sessions = Number(process.argv[2])
const store = createMemorySessionStore({ maxSessions: sessions + roomForMore })
const reply = (answer: MemoryAnswer): void => void process.send?.(answer)

/** On the heap, and outside of it. */
const usedBytes = async (): Promise<number> => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const perform = async (task: MemoryTask): Promise<MemoryAnswer> => {
  switch (task.kind) {
    case 'fill':
      return { kind: 'filled', footprint: await fill(store, { series, sessions, usedBytes }) }
    case 'measure':
      return { kind: 'measured', timings: await measureOperations(store, { ...task.options, series, sessions }) }
    case 'expire': {
      const onProgress = (text: string): void => reply({ kind: 'progress', text })
      return { kind: 'expired', figures: await measureExpiry(store, { ...task.options, series, sessions, onProgress }) }
    }
  }
}

// A parent that is gone asks nothing more.
process.on('disconnect', () => process.exit(0))
process.on('message', (task: MemoryTask) => {
  perform(task).then(reply, (error: unknown) => reply({ kind: 'failed', reason: String(error) }))
})
reply({ kind: 'ready' })
