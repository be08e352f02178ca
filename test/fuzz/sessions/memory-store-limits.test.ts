import { describe, expect, test } from '@jest/globals'
import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import { RandomLoad } from './random-load.ts'

/** `make test-memory-store` makes it a million. */
const operations = Number(process.env['MEMORY_STORE_OPERATIONS'] ?? 50_000)
/** Begun before the first of them has been awaited. */
const atOnce = 1_000
const stepsPerMeasure = 4
const limits = { sessions: 900, sessionBytes: 1_500_000, kvBytes: 10_000_000 }
const threshold = 0.85

describe('the memory store', () => {
  test('keeps every limit, and every session in a turn, through many concurrent operations', async () => {
    const evicted = { 'session-count': 0, 'session-memory': 0, 'kv-size': 0 }
    const makeStore = (nowMs: () => number) =>
      createMemorySessionStore({
        maxSessions: limits.sessions,
        tombstoneSeconds: 60,
        kvLimit: { maxBytes: limits.kvBytes, threshold },
        // Nothing is taken yet, so that up to the threshold all is for sessions.
        memory: {
          threshold,
          watch: (onReading) => {
            onReading({ usedBytes: 0, limitBytes: limits.sessionBytes / threshold })
            return () => {}
          },
        },
        nowMs,
        onEvicted: (what, count) => {
          evicted[what] += count
        },
      })
    const load = new RandomLoad(makeStore)
    const { store } = load
    const most = { sessions: 0, sessionBytes: 0, kvBytes: 0 }
    const measure = async (): Promise<void> => {
      const [{ sessions }, { kvBytes = 0, sessionBytes = 0 }] = await Promise.all([store.counts(), store.sizes()])
      most.sessions = Math.max(most.sessions, sessions)
      most.sessionBytes = Math.max(most.sessionBytes, sessionBytes)
      most.kvBytes = Math.max(most.kvBytes, kvBytes)
    }

    for (let done = 0; done < operations; done += atOnce) {
      await Promise.all(
        Array.from({ length: atOnce }, async (_, index) => {
          const step = load.step()
          if (index % stepsPerMeasure === 0) await measure()
          await step
        }),
      )
    }

    expect(most.sessions).toBeLessThanOrEqual(limits.sessions)
    expect(most.sessionBytes).toBeLessThanOrEqual(limits.sessionBytes)
    expect(most.kvBytes).toBeLessThanOrEqual(limits.kvBytes)
    expect(load.outcomes.lostInTurn).toBe(0)
    // All of it happened, or the limits were never put to the test.
    const { created, completed, stored } = load.outcomes
    expect(Math.min(created, completed, stored, ...Object.values(evicted))).toBeGreaterThan(operations / 1_000)
  }, 600_000)
})
