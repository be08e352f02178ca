import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import type { StoreUnderTest } from './store-under-test.ts'

type Options = Omit<Parameters<typeof createMemorySessionStore>[0], 'nowMs'>

/** A memory store on a clock that the suite moves. */
export const memoryUnderTest = (options: Options, nowMs = Date.UTC(2026, 0, 1)): StoreUnderTest => ({
  store: createMemorySessionStore({ ...options, nowMs: () => nowMs }),
  nowMs: async () => nowMs,
  advance: async (milliseconds) => {
    nowMs += milliseconds
  },
})
