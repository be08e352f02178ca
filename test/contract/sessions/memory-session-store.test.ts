import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import { describeSessionStore } from './session-store-suite.ts'
import { testKvLimit, testSupersededGraceMs, testTombstoneSeconds } from './store-under-test.ts'

describeSessionStore('the memory session store', async () => {
  let nowMs = Date.UTC(2026, 0, 1)
  const store = createMemorySessionStore({
    maxSessions: 1000,
    tombstoneSeconds: testTombstoneSeconds,
    supersededGraceMs: testSupersededGraceMs,
    kvLimit: testKvLimit,
    nowMs: () => nowMs,
  })
  return {
    store,
    nowMs: async () => nowMs,
    advance: async (milliseconds) => {
      nowMs += milliseconds
    },
  }
})
