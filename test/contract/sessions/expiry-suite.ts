import { describe, expect, test } from '@jest/globals'
import { mallory, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

export const describeExpiry = (calls: StoreCalls): void => {
  const { abandon, advance, begin, claimAll, complete, counts, create, createActive, get, list } = calls
  const { remove, setTtl, store, storeKv, sweep } = calls

  /** Sweeps `limit` sessions at a time, as the reaper does. Resolves to how many ended. */
  const sweepInStepsOf = async (limit: number): Promise<number> => {
    const { ended, hasMore } = await store().expireDue(limit)
    return ended + (hasMore ? await sweepInStepsOf(limit) : 0)
  }

  describe('expiry', () => {
    test.each([
      { name: 'the sweep', discover: () => sweep() },
      // A turn that has begun may start the session anew, so that it can be deleted.
      { name: 'begin', discover: () => begin('turn-x'), canBeDeleted: true },
      { name: 'list', discover: () => list() },
      { name: 'get', discover: () => get() },
      { name: 'remove', discover: () => remove() },
      { name: 'setTtl', discover: () => setTtl(60) },
      { name: 'complete of a turn that never began', discover: () => complete('turn-x') },
      { name: 'setKvStatus', discover: () => store().setKvStatus({ key: session, status: 'too_short' }) },
    ])('$name ends an expired session and queues its KV once', async ({ discover, canBeDeleted = false }) => {
      await createActive()
      await storeKv('artefact-1')
      await advance(seconds(3570))
      expect(await get()).toBeDefined()
      await advance(seconds(30))
      await discover()

      expect(await get()).toBeUndefined()
      expect(await remove()).toBe(canBeDeleted)
      expect(await list()).toEqual({ records: [], hasMore: false })
      expect(await counts()).toEqual({ removals: 1, sessions: 0 })
      expect(await claimAll()).toEqual({ [`s:${session}`]: '{"file":"artefact-1"}' })
      expect(await sweep()).toBe(0)
    })

    test('begin on an expired session tells its own tenant the TTL and model, and another tenant nothing', async () => {
      await createActive({ ttlSeconds: 600 })
      await advance(seconds(600))

      expect(await begin('turn-2', { tenant: mallory })).toEqual({ kind: 'unknown' })
      expect(await begin()).toEqual({
        kind: 'expired',
        cause: 'time',
        ttlSeconds: 600,
        model: 'llama-3.1-8b',
        nowMs: expect.any(Number),
      })
      expect(await get()).toBeUndefined()
    })

    test('a turn holds its session past the deadline until it completes', async () => {
      await createActive({ ttlSeconds: 1 })
      await begin()
      await advance(seconds(30))

      expect(await sweep()).toBe(0)
      expect(await get()).toMatchObject({ turns: 1 })
      expect(await complete()).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(await get()).toBeUndefined()
      expect(await sweep()).toBe(0)
      expect(await begin('turn-3')).toMatchObject({ kind: 'expired' })
    })

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
      await advance(seconds(29))
      expect(await sweepInStepsOf(1)).toBe(0)
      await advance(seconds(1))
      expect(await sweepInStepsOf(1)).toBe(2)
    })

    test('the sweep finds an expired session whose lease once outlasted its deadline', async () => {
      const slide = { expiry: { kind: 'slide' } } as const
      await createActive({ ttlSeconds: 60 })
      await advance(seconds(30))
      await begin()
      await complete('turn-2', slide)
      await begin('turn-3', { leaseMs: 600_000 })
      await advance(seconds(30))
      expect(await sweepInStepsOf(10)).toBe(0)
      await complete('turn-3', slide)
      await advance(seconds(60))

      expect(await sweepInStepsOf(10)).toBe(1)
    })

    test('a lease that ran out does not hold the session, and its turn completes as gone', async () => {
      await createActive({ ttlSeconds: 1 })
      await begin('turn-2', { leaseMs: 10_000 })
      await advance(seconds(10))

      expect(await sweep()).toBe(1)
      expect(await complete()).toEqual({ kind: 'gone' })
      expect(await begin('turn-3')).toMatchObject({ kind: 'expired' })
    })

    test('the sweep ends an unfinished create when its lease runs out, and leaves no tombstone', async () => {
      await create({ leaseMs: 10_000 })
      await advance(seconds(9))
      expect(await sweep()).toBe(0)
      await advance(seconds(1))

      expect(await sweep()).toBe(1)
      expect(await begin()).toEqual({ kind: 'unknown' })
      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await complete('turn-1')).toEqual({ kind: 'gone' })
    })

    test('the sweep ends an unfinished create when the longest lease left runs out', async () => {
      await create()
      await begin('turn-2', { leaseMs: 10_000 })
      await abandon('turn-1')
      await advance(seconds(10))

      expect(await sweep()).toBe(1)
    })

    test('a TTL set during a create counts, and does not defer the sweep of an unfinished create', async () => {
      await create({ leaseMs: 10_000 })
      await createActive({ key: sessionKey('finished') })
      expect(await setTtl(7200)).toMatchObject({ ttlSeconds: 7200 })
      await advance(seconds(10))

      expect(await sweep()).toBe(1)
      expect(await counts()).toEqual({ removals: 1, sessions: 1 })
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
