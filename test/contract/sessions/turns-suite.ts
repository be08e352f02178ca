import { describe, expect, test } from '@jest/globals'
import { maxLeases } from '../../../src/sessions/limits.ts'
import { hours, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

export const describeTurns = (calls: StoreCalls): void => {
  const { advance, begin, complete, create, createActive, get, nowMs, sweep } = calls

  describe('turns', () => {
    test('begin returns the session and the time', async () => {
      const record = await createActive()
      const before = await nowMs()
      const outcome = await begin()
      const after = await nowMs()

      expect(outcome).toEqual({ kind: 'active', record: record, nowMs: expect.any(Number) })
      const beganAtMs = outcome.kind === 'active' ? outcome.nowMs : Number.NaN
      expect(beganAtMs).toBeGreaterThanOrEqual(before)
      expect(beganAtMs).toBeLessThanOrEqual(after)
    })

    test.each([
      {
        name: 'fractions',
        usage: { prompt: 1.9, output: 0.5, cached: 1.1 },
        tokens: { prompt: 1, output: 0, cached: 1 },
      },
      {
        name: 'NaN, infinity and a negative number',
        usage: { prompt: Number.NaN, output: Number.POSITIVE_INFINITY, cached: -5 },
        tokens: { prompt: 0, output: 0, cached: 0 },
      },
      {
        name: 'a number above the largest count',
        usage: { prompt: 1e300, output: 1, cached: 0 },
        tokens: { prompt: 999_999_999_999_999, output: 1, cached: 0 },
      },
    ])('a session stays readable when an engine reports $name', async ({ usage, tokens }) => {
      await create()
      await complete('turn-1', { usage })

      expect(await get()).toMatchObject({ turns: 1, tokens })
      expect(await begin()).toMatchObject({ kind: 'active' })
    })

    test('60 concurrent turns of two sessions count for their own session, once each', async () => {
      const keys = [session, sessionKey('other')] as const
      for (const key of keys) await createActive({ key })
      const turns = Array.from({ length: 60 }, (_, index) => ({
        turnId: `turn-${index}x`,
        key: index % 3 === 0 ? keys[1] : keys[0],
      }))
      const begun = await Promise.all(turns.map(({ turnId, key }) => begin(turnId, { key })))
      const twice = [...turns, ...turns]
      const ended = await Promise.all(twice.map(({ turnId, key }) => complete(turnId, { key })))

      expect(begun).toMatchObject(turns.map(({ key }) => ({ kind: 'active', record: { key } })))
      const once = twice.map(({ key }, index) => ({ kind: 'completed', record: { key }, isCounted: index < 60 }))
      expect(ended).toMatchObject(once)
      expect(await get({ key: keys[0] })).toMatchObject({ turns: 41, tokens: { prompt: 41_000 } })
      expect(await get({ key: keys[1] })).toMatchObject({ turns: 21, tokens: { prompt: 21_000 } })
    })

    test('of more turns than a session keeps leases, the one whose lease ends first does not count', async () => {
      await createActive()
      await begin('late', { leaseMs: 70_000 })
      await begin('early', { leaseMs: 50_000 })
      for (let turn = 3; turn <= maxLeases; turn++) await begin(`turn-${turn}`)
      expect(await complete('turn-3')).toMatchObject({ record: { turns: 2 } })
      await begin('one-more')
      await begin('too-many')

      expect(await complete('early')).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(await complete('too-many')).toMatchObject({ record: { turns: 3 } })
      expect(await complete('late')).toMatchObject({ record: { turns: 4 } })
    })

    test('of turns that never end, the longest lease holds the session', async () => {
      await createActive()
      await begin('longest', { leaseMs: hours(2) })
      for (let turn = 0; turn < 2 * maxLeases; turn++) await begin(`turn-${turn}`)
      await advance(hours(2) - seconds(60))

      expect(await sweep()).toBe(0)
      expect(await get()).toMatchObject({ turns: 1 })
      await advance(seconds(60))
      expect(await sweep()).toBe(1)
    })
  })
}
