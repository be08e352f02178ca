import { describe, expect, test } from '@jest/globals'
import {
  alice,
  aTurn,
  claimAll,
  completed,
  createActive,
  drain,
  hours,
  mallory,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
  storeKv,
  testTombstoneSeconds,
} from './store-under-test.ts'

export const describeRevival = (make: () => Promise<StoreUnderTest>): void => {
  describe('starting anew', () => {
    test('a completed turn starts an expired session anew', async () => {
      const under = await make()
      const first = await createActive(under, { ttlSeconds: 600 })
      await storeKv(under, 'artefact-1', 1)
      await under.advance(seconds(600))
      await under.store.begin(aTurn('turn-2'))
      const before = await under.nowMs()
      const outcome = await under.store.complete(
        completed('turn-2', { pod: '10.0.0.3:8000', usage: { prompt: 7, output: 8, cached: 0 } }),
      )
      const record = await under.store.get(owned)

      expect(outcome).toEqual({ kind: 'completed', record })
      expect(record).toEqual({
        key: session,
        tenant: alice,
        sealedId: first.sealedId,
        model: first.model,
        createdAtMs: expect.any(Number),
        expiresAtMs: (record?.createdAtMs ?? 0) + seconds(600),
        ttlSeconds: 600,
        turns: 1,
        tokens: { prompt: 7, output: 8, cached: 0 },
        pod: '10.0.0.3:8000',
        kv: undefined,
        kvStatus: undefined,
      })
      expect(record?.createdAtMs).toBeGreaterThanOrEqual(before)
      expect(await under.store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({
        records: [record],
        hasMore: false,
      })
      await under.advance(seconds(600))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('a revived session keeps what lies in pods, and only its old artefact goes', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'artefact-1', 1)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await under.store.complete(completed('turn-2'))

      expect(await claimAll(under)).toEqual({ 'a:artefact-1': '{"file":"artefact-1"}' })
    })

    test('a TTL sent with the reviving turn holds', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      const expiresAtMs = (await under.nowMs()) + seconds(120)
      await under.store.complete(completed('turn-2', { expiry: { kind: 'set', ttlSeconds: 120, expiresAtMs } }))

      expect(await under.store.get(owned)).toMatchObject({ ttlSeconds: 120, expiresAtMs })
    })

    test('two turns may start it anew together: the first revives, the second adds', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('a'))
      await under.store.begin(aTurn('b'))
      await under.store.complete(completed('a'))

      expect(await under.store.complete(completed('b'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    })

    test('a failed turn leaves an expired session expired', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await under.store.abandon({ key: session, turnId: 'turn-2' })

      expect(await under.store.complete(completed('turn-2'))).toEqual({ kind: 'gone' })
      expect(await under.store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'expired' })
      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 0 })
    })

    test('a failed turn on an expired session has its leavings removed', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await drain(under)
      await under.store.abandon({ key: session, turnId: 'turn-2' })

      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
    })

    test('a failed turn on a session that was forgotten meanwhile has its leavings removed', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await drain(under)
      await under.advance(seconds(2 * testTombstoneSeconds))
      expect(await under.store.begin(aTurn('turn-3'))).toEqual({ kind: 'unknown' })
      await under.store.abandon({ key: session, turnId: 'turn-2' })

      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
    })

    test('a turn that had completed before the session expired cannot revive it by being reported again', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))

      expect(await under.store.complete(completed('turn-1'))).toEqual({ kind: 'gone' })
      expect(await under.store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'expired' })
    })

    test('an expired session is forgotten after the time of its tombstone, but not under a turn that revives it', async () => {
      const under = await make()
      await createActive(under, { key: sessionKey('idle') })
      await createActive(under)
      await under.advance(hours(1))
      expect((await under.store.expireDue(10)).ended).toBe(2)
      await under.advance(hours(24) - seconds(30))
      await under.store.begin(aTurn('turn-2', 60_000))
      await under.advance(seconds(45))

      expect(await under.store.begin({ ...aTurn('turn-2'), key: sessionKey('idle') })).toEqual({ kind: 'unknown' })
      expect(await under.store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed', record: { turns: 1 } })
    })

    test('a session that is deleted while a turn is about to start it anew stays deleted', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await drain(under)

      expect(await under.store.remove(owned)).toBe(true)
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
      expect(await under.store.complete(completed('turn-2'))).toEqual({ kind: 'gone' })
      expect(await under.store.begin(aTurn('turn-3'))).toEqual({ kind: 'deleted' })
      expect(await under.store.remove(owned)).toBe(false)
    })

    test.each([
      { name: 'that no turn has begun on', prepare: async (): Promise<void> => {} },
      {
        name: 'whose turn failed',
        prepare: async ({ store }: StoreUnderTest): Promise<void> => {
          await store.begin(aTurn('turn-2'))
          await store.abandon({ key: session, turnId: 'turn-2' })
        },
      },
    ])('there is nothing to delete of an expired session $name', async ({ prepare }) => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await prepare(under)

      expect(await under.store.remove(owned)).toBe(false)
      expect(await under.store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'expired' })
    })

    test('nobody else can delete a session that a turn is about to start anew', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))

      expect(await under.store.remove({ key: session, tenant: mallory })).toBe(false)
      expect(await under.store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed' })
    })

    test('a revived session outlives its tombstone', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(1))
      await under.store.begin(aTurn('turn-2'))
      await under.store.complete(completed('turn-2'))
      await under.store.setTtl({ ...owned, ttlSeconds: 7 * 86_400 })
      await under.advance(hours(48))

      expect(await under.store.get(owned)).toMatchObject({ turns: 1 })
    })
  })
}
