import { describe, expect, test } from '@jest/globals'
import { maxLeases } from '../../../src/sessions/limits.ts'
import { hours, mallory, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

export const describeTurns = (calls: StoreCalls): void => {
  const { abandon, advance, begin, claimAll, claimOne, complete, counts, create, createActive } = calls
  const { drain, get, list, nowMs, remove, store, storeKv, sweep } = calls

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

    test('a completed turn adds its usage and sets the pod', async () => {
      await createActive()
      await begin()
      const usage = { prompt: 5, output: 6, cached: 0 }
      const outcome = await complete('turn-2', { pod: '10.0.0.3:8000', usage })

      expect(outcome).toMatchObject({
        kind: 'completed',
        record: { turns: 2, pod: '10.0.0.3:8000', tokens: { prompt: 1005, output: 106, cached: 900 } },
      })
      expect(await get()).toEqual(outcome.kind === 'completed' ? outcome.record : undefined)
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

    test('a turn counts once, however often it begins and completes, and not at all if it never began', async () => {
      const record = await createActive()
      expect(await complete('turn-9')).toEqual({ kind: 'completed', record })
      await begin()
      await begin()
      const first = await complete()

      expect(first).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(await complete('turn-2', { pod: '10.9.9.9:1' })).toEqual(first)
      expect(await get()).toMatchObject({ turns: 2, pod: '10.0.0.2:8000' })
    })

    test('an abandoned turn changes nothing', async () => {
      const record = await createActive()
      await begin()
      await abandon()
      await abandon()

      expect(await get()).toEqual(record)
      expect(await complete()).toEqual({ kind: 'completed', record })
      expect(await counts()).toEqual({ removals: 0, sessions: 1 })
    })

    test('overlapping turns all count but the abandoned one, and the last to complete sets the pod', async () => {
      await createActive()
      for (const turnId of ['a', 'b', 'c']) await begin(turnId)
      await complete('b', { pod: 'pod-b:1' })
      await abandon('c')
      await complete('a', { pod: 'pod-a:1' })

      expect(await get()).toMatchObject({ turns: 3, pod: 'pod-a:1', tokens: { prompt: 3000, output: 300 } })
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
      expect(ended).toMatchObject(twice.map(({ key }) => ({ kind: 'completed', record: { key } })))
      expect(await get({ key: keys[0] })).toMatchObject({ turns: 41, tokens: { prompt: 41_000 } })
      expect(await get({ key: keys[1] })).toMatchObject({ turns: 21, tokens: { prompt: 21_000 } })
    })

    test.each([
      {
        name: 'keep leaves the deadline',
        expiry: () => ({ kind: 'keep' }) as const,
        ttlSeconds: 3600,
        left: hours(0.5),
      },
      {
        name: 'slide counts the TTL from now',
        expiry: () => ({ kind: 'slide' }) as const,
        ttlSeconds: 3600,
        left: hours(1),
      },
      {
        name: 'set replaces TTL and deadline, also by an earlier one',
        expiry: (now: number) => ({ kind: 'set', ttlSeconds: 90, expiresAtMs: now + seconds(90) }) as const,
        ttlSeconds: 90,
        left: seconds(90),
      },
    ])('expiry of a completed turn: $name', async ({ expiry, ttlSeconds, left }) => {
      await createActive()
      await advance(hours(0.5))
      await begin()
      await complete('turn-2', { expiry: expiry(await nowMs()) })

      expect(await get()).toMatchObject({ ttlSeconds })
      await advance(left - seconds(60))
      expect(await sweep()).toBe(0)
      await advance(seconds(60))
      expect(await sweep()).toBe(1)
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

    test('a failed create leaves only the removal of what its turn may have left in a pod', async () => {
      await create()
      await abandon('turn-1')

      expect(await get()).toBeUndefined()
      expect(await begin()).toEqual({ kind: 'unknown' })
      expect(await list()).toEqual({ records: [], hasMore: false })
      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await complete('turn-1')).toEqual({ kind: 'gone' })
    })

    test.each([
      { name: 'completes', end: () => complete() },
      { name: 'is abandoned', end: () => abandon() },
    ])('a turn that $name after its session was deleted queues a removal', async ({ end }) => {
      await createActive()
      await begin()
      await remove()
      expect(await drain()).toEqual([`s:${session}`])
      expect(await claimAll()).toEqual({})

      await end()
      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await get()).toBeUndefined()
    })

    test("another tenant's turn on a deleted session queues nothing", async () => {
      await createActive()
      await remove()
      await drain()

      expect(await complete('turn-2', { tenant: mallory })).toEqual({ kind: 'gone' })
      expect(await counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a turn that ends while the removal of its session is claimed makes it due once more', async () => {
      await createActive()
      await storeKv('artefact-1')
      await begin()
      await remove()
      const first = await claimOne()

      expect(await complete()).toEqual({ kind: 'gone' })
      expect(await claimAll()).toEqual({})
      await store().ack([first])
      const second = await claimOne()
      expect(second).toMatchObject({ id: `s:${session}`, payload: '{"file":"artefact-1"}' })
      await store().ack([second])
      expect(await counts()).toEqual({ removals: 0, sessions: 0 })
    })
  })
}
