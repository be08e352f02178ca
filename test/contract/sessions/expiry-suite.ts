import { describe, expect, test } from '@jest/globals'
import { type StoreCalls, seconds, sessionKey } from './store-under-test.ts'

export const describeExpiry = (calls: StoreCalls): void => {
  const { advance, begin, claimAll, complete, counts, createActive, store } = calls

  /** Sweeps `limit` sessions at a time, as the reaper does. Resolves to how many ended. */
  const sweepInStepsOf = async (limit: number): Promise<number> => {
    const { ended, hasMore } = await store().expireDue(limit)
    return ended + (hasMore ? await sweepInStepsOf(limit) : 0)
  }

  describe('expiry', () => {
    test('the sweep skips sessions whose deadline moved, and ends those behind them', async () => {
      for (const name of ['used', 'used-too', 'left']) await createActive({ key: sessionKey(name), ttlSeconds: 60 })
      await advance(seconds(30))
      for (const key of ['used', 'used-too'].map(sessionKey)) {
        await begin('turn-2', { key })
        await complete('turn-2', { key, expiry: { kind: 'slide' } })
      }
      await advance(seconds(30))

      expect(await sweepInStepsOf(1)).toBe(1)
      expect(Object.keys(await claimAll())).toEqual([`s:${sessionKey('left')}`])
      await advance(seconds(20))
      expect(await sweepInStepsOf(1)).toBe(0)
      await advance(seconds(10))
      expect(await sweepInStepsOf(1)).toBe(2)
    })

    test('the sweep ends at most as many sessions as asked for, the most overdue first', async () => {
      for (const [index, name] of ['c', 'a', 'b', 'd'].entries()) {
        await createActive({ key: sessionKey(name), ttlSeconds: 10 * (index + 1) })
      }
      await advance(seconds(30))

      expect(await store().expireDue(2)).toEqual({ ended: 2, hasMore: true })
      expect(Object.keys(await claimAll()).sort()).toEqual([`s:${sessionKey('a')}`, `s:${sessionKey('c')}`])
      expect(await store().expireDue(2)).toEqual({ ended: 1, hasMore: false })
      expect(await store().expireDue(2)).toEqual({ ended: 0, hasMore: false })
      expect(await counts()).toEqual({ removals: 3, sessions: 1 })
    })
  })
}
