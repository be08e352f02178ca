import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { createTurnWaiters } from '../../../../src/kvcache/kv-events/turn-waiters.ts'

/** Waiters over lengths that the test sets, and a look at whether one of them was let go. */
const waitFor = (minTokens: number, signal = new AbortController().signal) => {
  const lengths = new Map<string, number>()
  const waiters = createTurnWaiters((turnId) => lengths.get(turnId) ?? 0)
  let gone = false
  void waiters.wait({ turnId: 't', minTokens }, signal).then(() => {
    gone = true
  })
  return {
    waiters,
    tell: (turnId: string, length: number): void => {
      lengths.set(turnId, length)
      waiters.told(turnId)
    },
    isGone: async (): Promise<boolean> => {
      await setImmediate()
      return gone
    },
  }
}

describe('turn waiters', () => {
  test('wait until the turn has enough', async () => {
    const { tell, isGone } = waitFor(4)
    tell('t', 3)
    tell('u', 9)
    expect(await isGone()).toBe(false)
    tell('t', 4)
    expect(await isGone()).toBe(true)
  })

  test('wait for something where nothing in particular is asked for', async () => {
    const { tell, isGone } = waitFor(0)
    expect(await isGone()).toBe(false)
    tell('t', 1)
    expect(await isGone()).toBe(true)
  })

  test('go when the signal fires', async () => {
    const controller = new AbortController()
    const { isGone } = waitFor(4, controller.signal)
    expect(await isGone()).toBe(false)
    controller.abort()
    expect(await isGone()).toBe(true)
  })

  test('do not wait for a signal that has fired', async () => {
    expect(await waitFor(4, AbortSignal.abort()).isGone()).toBe(true)
  })

  test('go when nothing more will come', async () => {
    const { waiters, isGone } = waitFor(4)
    waiters.release()
    expect(await isGone()).toBe(true)
  })
})
