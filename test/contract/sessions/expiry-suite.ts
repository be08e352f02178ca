import { describe, expect, test } from '@jest/globals'
import {
  alice,
  announceFor,
  aTurn,
  claimAll,
  completed,
  createActive,
  hours,
  mallory,
  newSession,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
  storedKv,
  storeKv,
} from './store-under-test.ts'

/** How the end of a session is brought about: by the sweep, or by the first to come upon it. */
const discoverers = [
  { name: 'the sweep', discover: (under: StoreUnderTest) => under.store.expireDue(10) },
  {
    name: 'the next turn',
    discover: (under: StoreUnderTest) => under.store.begin(aTurn('turn-x')),
    // It may start the session anew.
    canBeDeleted: true,
  },
  {
    name: 'a list',
    discover: (under: StoreUnderTest) => under.store.list({ tenant: alice, limit: 10, after: undefined }),
  },
  { name: 'a look', discover: (under: StoreUnderTest) => under.store.get(owned) },
  { name: 'a delete', discover: (under: StoreUnderTest) => under.store.remove(owned) },
  { name: 'a new TTL', discover: (under: StoreUnderTest) => under.store.setTtl({ ...owned, ttlSeconds: 60 }) },
  { name: 'a turn that never began', discover: (under: StoreUnderTest) => under.store.complete(completed('turn-x')) },
  {
    name: 'a late offload',
    discover: (under: StoreUnderTest) => under.store.setKvStatus({ key: session, status: 'too_short' }),
  },
]

/** As the reaper does it. Resolves to how many ended. */
const sweepInStepsOf = async (limit: number, { store }: StoreUnderTest): Promise<number> => {
  let total = 0
  for (;;) {
    const { ended, hasMore } = await store.expireDue(limit)
    total += ended
    if (!hasMore) return total
  }
}

export const describeExpiry = (make: () => Promise<StoreUnderTest>): void => {
  describe('expiry', () => {
    test.each(discoverers)(
      'found by $name, an expired session is gone and its KV queued once',
      async ({ discover, canBeDeleted = false }) => {
        const under = await make()
        await createActive(under)
        await storeKv(under, 'artefact-1', 1)
        await under.advance(hours(1) - seconds(30))
        expect(await under.store.get(owned)).toBeDefined()
        await under.advance(seconds(30))
        await discover(under)

        expect(await under.store.get(owned)).toBeUndefined()
        expect(await under.store.remove(owned)).toBe(canBeDeleted)
        expect(await under.store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({
          records: [],
          hasMore: false,
        })
        expect(await under.store.counts()).toEqual({ removals: 1, sessions: 0 })
        expect(await claimAll(under)).toEqual({ [`s:${session}`]: '{"file":"artefact-1"}' })
        expect((await under.store.expireDue(10)).ended).toBe(0)
      },
    )

    test('its own tenant may start an expired session anew, others see nothing', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 600 })
      await under.advance(seconds(600))

      expect(await under.store.begin({ ...aTurn('turn-2'), tenant: mallory })).toEqual({ kind: 'unknown' })
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({
        kind: 'expired',
        cause: 'time',
        ttlSeconds: 600,
        model: 'llama-3.1-8b',
        nowMs: expect.any(Number),
      })
      expect(await under.store.get(owned)).toBeUndefined()
    })

    test('a turn keeps its session alive past the deadline, and not a moment longer', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 1 })
      await under.store.begin(aTurn('turn-2', 60_000))
      await under.advance(seconds(30))

      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
      expect(await under.store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      expect(await under.store.get(owned)).toBeUndefined()
      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'expired' })
    })

    test.each([
      { name: 'completes', end: (under: StoreUnderTest) => under.store.complete(completed('turn-2')) },
      { name: 'fails', end: (under: StoreUnderTest) => under.store.abandon({ key: session, turnId: 'turn-2' }) },
    ])('the sweep ends an overdue session as soon as its last turn $name', async ({ end }) => {
      const under = await make()
      await createActive(under, { ttlSeconds: 1 })
      await under.store.begin(aTurn('turn-2', 60_000))
      await under.advance(seconds(30))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      await end(under)

      expect((await under.store.expireDue(10)).ended).toBe(1)
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
    })

    test('the sweep passes sessions whose deadline has moved on, and ends those behind them', async () => {
      const under = await make()
      for (const name of ['used', 'used-too', 'left'])
        await createActive(under, { key: sessionKey(name), ttlSeconds: 60 })
      await under.advance(seconds(30))
      for (const name of ['used', 'used-too']) {
        const turn = { ...aTurn('turn-2'), key: sessionKey(name) }
        await under.store.begin(turn)
        await under.store.complete({ ...completed('turn-2', { expiry: { kind: 'slide' } }), key: sessionKey(name) })
      }
      await under.advance(seconds(30))

      expect(await sweepInStepsOf(1, under)).toBe(1)
      expect(Object.keys(await claimAll(under))).toEqual([`s:${sessionKey('left')}`])
      await under.advance(seconds(29))
      expect(await sweepInStepsOf(1, under)).toBe(0)
      await under.advance(seconds(1))
      expect(await sweepInStepsOf(1, under)).toBe(2)
    })

    test('a lease that outlasts a deadline does not keep the sweep from a session whose turns have ended', async () => {
      const under = await make()
      const slide = { expiry: { kind: 'slide' } } as const
      await createActive(under, { ttlSeconds: 60 })
      await under.advance(seconds(30))
      await under.store.begin(aTurn('turn-2'))
      await under.store.complete(completed('turn-2', slide))
      await under.store.begin(aTurn('turn-3', 600_000))
      await under.advance(seconds(30))
      expect(await sweepInStepsOf(10, under)).toBe(0)
      await under.store.complete(completed('turn-3', slide))
      await under.advance(seconds(60))

      expect(await sweepInStepsOf(10, under)).toBe(1)
    })

    test('a deadline that is set to an earlier time is kept', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 3600 })
      await under.store.begin(aTurn('turn-2'))
      const expiresAtMs = (await under.nowMs()) + seconds(10)
      await under.store.complete(completed('turn-2', { expiry: { kind: 'set', ttlSeconds: 10, expiresAtMs } }))
      await under.advance(seconds(10))

      expect(await sweepInStepsOf(10, under)).toBe(1)
    })

    test('a create that takes longer than its TTL lives until it completes', async () => {
      const under = await make()
      await under.store.create(newSession({ ttlSeconds: 1 }))
      await under.advance(seconds(30))

      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.complete(completed('turn-1'))).toMatchObject({ kind: 'completed', record: { turns: 1 } })
      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'expired', ttlSeconds: 1 })
    })

    test('the last of several overlapping turns decides how long the session is held', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 1 })
      await under.store.begin(aTurn('short', 10_000))
      await under.store.begin(aTurn('long', 60_000))
      await under.advance(seconds(20))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      await under.advance(seconds(20))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      await under.advance(seconds(20))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('a turn that is begun again keeps the longer of its leases', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 1 })
      await under.store.begin(aTurn('turn-2', 60_000))
      await under.store.begin(aTurn('turn-2', 10_000))
      await under.advance(seconds(30))

      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
    })

    test('an unfinished create is swept when the longest lease that is left runs out', async () => {
      const under = await make()
      await under.store.create(newSession({ leaseMs: 60_000 }))
      await under.store.begin(aTurn('turn-2', 10_000))
      await under.store.abandon({ key: session, turnId: 'turn-1' })
      await under.advance(seconds(10))

      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('a lease that ran out does not hold the session, and its turn comes too late', async () => {
      const under = await make()
      await createActive(under, { ttlSeconds: 1 })
      await under.store.begin(aTurn('turn-2', 10_000))
      await under.advance(seconds(10))

      expect((await under.store.expireDue(10)).ended).toBe(1)
      expect(await under.store.complete(completed('turn-2'))).toEqual({ kind: 'gone' })
      expect(await under.store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'expired' })
    })

    test('a turn that outlasts its lease still counts while nobody cleared the lease away', async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('late', 10_000))
      await under.store.begin(aTurn('later', 10_000))
      await under.advance(seconds(10))

      expect(await under.store.complete(completed('late'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
      await under.store.begin(aTurn('turn-2'))
      expect(await under.store.complete(completed('later'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    })

    test('a create that never ends is swept when its lease runs out, without a trace', async () => {
      const under = await make()
      await under.store.create(newSession({ leaseMs: 10_000 }))
      await under.advance(seconds(9))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      await under.advance(seconds(1))

      expect((await under.store.expireDue(10)).ended).toBe(1)
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'unknown' })
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
      expect(await under.store.complete(completed('turn-1'))).toEqual({ kind: 'gone' })
    })

    test('a TTL that is set while the create runs counts, and leaves the sweep of an unfinished create alone', async () => {
      const under = await make()
      await under.store.create(newSession({ leaseMs: 10_000 }))
      await createActive(under, { key: sessionKey('finished') })
      expect(await under.store.setTtl({ ...owned, ttlSeconds: 7200 })).toMatchObject({ ttlSeconds: 7200 })
      await under.advance(seconds(10))

      expect((await under.store.expireDue(10)).ended).toBe(1)
      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 1 })
    })

    test('a second turn on an unfinished create holds it beyond the first lease', async () => {
      const under = await make()
      await under.store.create(newSession({ leaseMs: 10_000 }))
      await under.store.begin(aTurn('turn-2', 60_000))
      await under.advance(seconds(10))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      expect(await under.store.get(owned)).toBeDefined()

      await under.advance(seconds(50))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('artefacts that were announced stay queued when their session ends', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'artefact-1', 1)
      await announceFor(under, 'artefact-2', { graceMs: hours(2) })
      await under.advance(hours(1))
      await under.store.expireDue(10)

      expect(await under.store.counts()).toEqual({ removals: 2, sessions: 0 })
      expect(await under.store.commitKv({ key: session, kv: storedKv('artefact-2', 2) })).toBe(false)
      expect(await claimAll(under)).toEqual({
        [`s:${session}`]: '{"file":"artefact-1"}',
        'a:artefact-2': '{"file":"artefact-2"}',
      })
    })

    test('the sweep ends as many as it is asked to, the most overdue first', async () => {
      const under = await make()
      for (const [index, name] of ['c', 'a', 'b', 'd'].entries()) {
        await createActive(under, { key: sessionKey(name), ttlSeconds: 10 * (index + 1) })
      }
      await under.advance(seconds(30))

      expect(await under.store.expireDue(2)).toEqual({ ended: 2, hasMore: true })
      expect(Object.keys(await claimAll(under)).sort()).toEqual([`s:${sessionKey('a')}`, `s:${sessionKey('c')}`])
      expect(await under.store.expireDue(2)).toEqual({ ended: 1, hasMore: false })
      expect(await under.store.expireDue(2)).toEqual({ ended: 0, hasMore: false })
      expect(await under.store.counts()).toEqual({ removals: 3, sessions: 1 })
    })
  })
}
