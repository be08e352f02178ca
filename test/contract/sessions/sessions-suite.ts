import { describe, expect, test } from '@jest/globals'
import {
  alice,
  aTurn,
  claimAll,
  completed,
  createActive,
  hours,
  mallory,
  newSession,
  owned,
  type StoreUnderTest,
  session,
  sessionKey,
  storeKv,
} from './store-under-test.ts'

export const describeSessions = (make: () => Promise<StoreUnderTest>): void => {
  describe('sessions', () => {
    test('a created session is there at once, as it was written', async () => {
      const under = await make()
      const before = await under.nowMs()
      const outcome = await under.store.create(newSession())
      const after = await under.nowMs()
      const record = await under.store.get(owned)

      expect(outcome).toEqual({ kind: 'created', record })
      expect(record).toEqual({
        key: session,
        tenant: alice,
        sealedId: newSession().sealedId,
        model: 'llama-3.1-8b',
        createdAtMs: expect.any(Number),
        expiresAtMs: (record?.createdAtMs ?? 0) + hours(1),
        ttlSeconds: 3600,
        turns: 0,
        tokens: { prompt: 0, output: 0, cached: 0 },
        pod: '10.0.0.1:8000',
        kv: undefined,
        kvStatus: undefined,
      })
      expect(record?.createdAtMs).toBeGreaterThanOrEqual(before)
      expect(record?.createdAtMs).toBeLessThanOrEqual(after)
    })

    test.each([
      { name: 'no pod yet', change: { pod: undefined } },
      { name: 'a model of 300 characters', change: { model: 'm'.repeat(300) } },
      { name: 'a model of 5,000 characters', change: { model: 'm'.repeat(5000) } },
      { name: 'a model with characters of one to four bytes', change: { model: 'aé漢🦙'.repeat(40) } },
      { name: 'a model with line feeds and NULs', change: { model: 'a\n\0\r\nb' } },
      { name: 'an empty sealed id', change: { sealedId: '' } },
      { name: 'the longest TTL', change: { ttlSeconds: 999_999_999 } },
      { name: 'a key that is a word of JavaScript', change: { key: sessionKey('__proto__'), model: 'constructor' } },
    ])('keeps $name', async ({ change }) => {
      const under = await make()
      const wanted = newSession(change)
      await under.store.create(wanted)

      const record = await under.store.get(wanted)
      const { key, sealedId, model, ttlSeconds, pod } = wanted
      expect(record).toMatchObject({ key, sealedId, model, ttlSeconds, pod })
    })

    test('another tenant sees, changes and deletes nothing', async () => {
      const under = await make()
      const record = await createActive(under)
      const foreign = { key: session, tenant: mallory }

      expect(await under.store.begin({ ...aTurn('turn-2'), ...foreign })).toEqual({ kind: 'unknown' })
      expect(await under.store.complete(completed('turn-1', foreign))).toEqual({ kind: 'gone' })
      expect(await under.store.get(foreign)).toBeUndefined()
      expect(await under.store.setTtl({ ...foreign, ttlSeconds: 1 })).toBeUndefined()
      expect(await under.store.remove(foreign)).toBe(false)
      expect(await under.store.list({ tenant: mallory, limit: 100, after: undefined })).toEqual({
        records: [],
        hasMore: false,
      })
      expect(await under.store.get(owned)).toEqual(record)
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 1 })
    })

    test("another tenant's turn cannot be ended under its lease", async () => {
      const under = await make()
      await createActive(under)
      await under.store.begin(aTurn('turn-2'))

      expect(await under.store.complete(completed('turn-2', { tenant: mallory }))).toEqual({ kind: 'gone' })
      expect(await under.store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    })

    test('another tenant cannot write over a session', async () => {
      const under = await make()
      const record = await createActive(under)

      expect(await under.store.create(newSession({ tenant: mallory }))).toEqual({ kind: 'key-reused' })
      expect(await under.store.get(owned)).toEqual(record)
    })

    test('an unknown session is unknown to every method', async () => {
      const under = await make()

      expect(await under.store.begin(aTurn('turn-1'))).toEqual({ kind: 'unknown' })
      expect(await under.store.get(owned)).toBeUndefined()
      expect(await under.store.setTtl({ ...owned, ttlSeconds: 60 })).toBeUndefined()
      expect(await under.store.remove(owned)).toBe(false)
      await under.store.setKvStatus({ key: session, status: 'too_short' })
      await under.store.dropKv({ key: session, artefactId: 'artefact', reason: 'missing' })
      expect(await under.store.counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a deleted session is gone for everyone, and its removal carries its KV', async () => {
      const under = await make()
      await createActive(under)
      await storeKv(under, 'artefact-1', 1)

      expect(await under.store.remove(owned)).toBe(true)
      expect(await under.store.remove(owned)).toBe(false)
      expect(await under.store.get(owned)).toBeUndefined()
      expect(await under.store.setTtl({ ...owned, ttlSeconds: 60 })).toBeUndefined()
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'deleted' })
      expect(await under.store.begin({ ...aTurn('turn-2'), tenant: mallory })).toEqual({ kind: 'unknown' })
      expect(await under.store.list({ tenant: alice, limit: 100, after: undefined })).toEqual({
        records: [],
        hasMore: false,
      })
      expect(await claimAll(under)).toEqual({ [`s:${session}`]: '{"file":"artefact-1"}' })
      expect(await under.store.counts()).toEqual({ removals: 1, sessions: 0 })
    })

    test('a session can be deleted while its first turn runs, and that turn does not bring it back', async () => {
      const under = await make()
      await under.store.create(newSession())

      expect(await under.store.remove(owned)).toBe(true)
      expect(await under.store.complete(completed('turn-1'))).toEqual({ kind: 'gone' })
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'deleted' })
    })

    test('a deleted session is forgotten after the time of its tombstone', async () => {
      const under = await make()
      await createActive(under)
      await under.store.remove(owned)

      await under.advance(hours(23))
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'deleted' })
      await under.advance(hours(1))
      expect(await under.store.begin(aTurn('turn-2'))).toEqual({ kind: 'unknown' })
    })

    test('setTtl counts from now, in both directions', async () => {
      const under = await make()
      await createActive(under)
      await under.advance(hours(0.5))

      const before = await under.nowMs()
      const shorter = await under.store.setTtl({ ...owned, ttlSeconds: 60 })
      const after = await under.nowMs()
      expect(shorter?.ttlSeconds).toBe(60)
      expect(shorter?.expiresAtMs).toBeGreaterThanOrEqual(before + 60_000)
      expect(shorter?.expiresAtMs).toBeLessThanOrEqual(after + 60_000)
      expect(await under.store.get(owned)).toEqual(shorter)

      await under.store.setTtl({ ...owned, ttlSeconds: 7200 })
      await under.advance(hours(1.9))
      expect((await under.store.expireDue(10)).ended).toBe(0)
      await under.advance(hours(0.1))
      expect((await under.store.expireDue(10)).ended).toBe(1)
    })

    test('a TTL set shorter lets the sweep end the session sooner', async () => {
      const under = await make()
      await createActive(under)
      await under.store.setTtl({ ...owned, ttlSeconds: 10 })

      await under.advance(10_000)
      expect((await under.store.expireDue(10)).ended).toBe(1)
      expect(await under.store.get(owned)).toBeUndefined()
    })

    test('answers a ping', async () => {
      const under = await make()
      await expect(under.store.ping()).resolves.toBeUndefined()
    })
  })
}
