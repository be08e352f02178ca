import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { createTurnWaiters } from '../../../../src/kvcache/kv-events/turn-waiters.ts'

/** Waiters over lengths that the test sets, and whether one of them has resolved. */
const waitFor = (minTokens: number, signal = new AbortController().signal) => {
  const lengths = new Map<string, number>()
  const waiters = createTurnWaiters((turnId) => lengths.get(turnId) ?? 0)
  let isResolved = false
  void waiters.wait({ turnId: 't', minTokens }, signal).then(() => {
    isResolved = true
  })
  return {
    waiters,
    tell: (turnId: string, length: number): void => {
      lengths.set(turnId, length)
      waiters.told(turnId)
    },
    hasResolved: async (): Promise<boolean> => {
      await setImmediate()
      return isResolved
    },
  }
}

describe('turn waiters', () => {
  test('wait until the turn has enough', async () => {
    const { tell, hasResolved } = waitFor(4)
    tell('t', 3)
    tell('u', 9)
    expect(await hasResolved()).toBe(false)
    tell('t', 4)
    expect(await hasResolved()).toBe(true)
  })

  test('wait for a first token when no number is asked for', async () => {
    const { tell, hasResolved } = waitFor(0)
    expect(await hasResolved()).toBe(false)
    tell('t', 1)
    expect(await hasResolved()).toBe(true)
  })

  test('resolve after an abort', async () => {
    const controller = new AbortController()
    const { hasResolved } = waitFor(4, controller.signal)
    expect(await hasResolved()).toBe(false)
    controller.abort()
    expect(await hasResolved()).toBe(true)
  })

  test('resolve at once with an aborted signal', async () => {
    expect(await waitFor(4, AbortSignal.abort()).hasResolved()).toBe(true)
  })

  test('resolve on release', async () => {
    const { waiters, hasResolved } = waitFor(4)
    waiters.release()
    expect(await hasResolved()).toBe(true)
  })
})
