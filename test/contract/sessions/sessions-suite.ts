import { describe, expect, test } from '@jest/globals'
import { alice, hours, mallory, newSession, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

export const describeSessions = (calls: StoreCalls): void => {
  const { advance, begin, claimAll, complete, counts, create, createActive, get, list } = calls
  const { setKvStatus, nowMs, remove, setTtl, store, storeKv, sweep } = calls

  describe('sessions', () => {
    test('create stores the session with its fields', async () => {
      const before = await nowMs()
      const outcome = await create()
      const after = await nowMs()
      const record = await get()

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
      { name: 'no pod', change: { pod: undefined } },
      { name: 'a model of 300 characters', change: { model: 'm'.repeat(300) } },
      { name: 'a model of 5,000 characters', change: { model: 'm'.repeat(5000) } },
      { name: 'a model with characters of one to four bytes', change: { model: 'aé漢🦙'.repeat(40) } },
      { name: 'a model with line feeds and NULs', change: { model: 'a\n\0\r\nb' } },
      { name: 'an empty sealed id', change: { sealedId: '' } },
      { name: 'the longest TTL', change: { ttlSeconds: 999_999_999 } },
      { name: 'a key that JavaScript reserves', change: { key: sessionKey('__proto__'), model: 'constructor' } },
    ])('get returns $name unchanged', async ({ change }) => {
      await create(change)

      const { key, sealedId, model, ttlSeconds, pod } = newSession(change)
      expect(await get({ key })).toMatchObject({ key, sealedId, model, ttlSeconds, pod })
    })

    test('another tenant can neither read, overwrite, change nor delete a session, nor complete its turn', async () => {
      const record = await createActive()
      await begin()
      const foreign = { tenant: mallory }

      expect(await begin('turn-2', foreign)).toEqual({ kind: 'unknown' })
      expect(await complete('turn-2', foreign)).toEqual({ kind: 'gone' })
      expect(await create(foreign)).toEqual({ kind: 'key-reused' })
      expect(await get(foreign)).toBeUndefined()
      expect(await setTtl(1, foreign)).toBeUndefined()
      expect(await remove(foreign)).toBe(false)
      expect(await list(mallory)).toEqual({ records: [], hasMore: false })
      expect(await get()).toEqual(record)
      expect(await counts()).toEqual({ removals: 0, sessions: 1 })
      expect(await complete()).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    })

    test('an unknown session is unknown to every method', async () => {
      expect(await begin()).toEqual({ kind: 'unknown' })
      expect(await get()).toBeUndefined()
      expect(await setTtl(60)).toBeUndefined()
      expect(await remove()).toBe(false)
      await setKvStatus('too_short')
      await store().dropKv({ key: session, artefactId: 'artefact', reason: 'missing' })
      expect(await counts()).toEqual({ removals: 0, sessions: 0 })
    })

    test('a deleted session is gone, and its queued removal carries its KV', async () => {
      await createActive()
      await storeKv('artefact-1')

      expect(await remove()).toBe(true)
      expect(await remove()).toBe(false)
      expect(await get()).toBeUndefined()
      expect(await setTtl(60)).toBeUndefined()
      expect(await begin()).toEqual({ kind: 'deleted' })
      expect(await begin('turn-2', { tenant: mallory })).toEqual({ kind: 'unknown' })
      expect(await list()).toEqual({ records: [], hasMore: false })
      expect(await claimAll()).toEqual({ [`s:${session}`]: '{"file":"artefact-1"}' })
      expect(await counts()).toEqual({ removals: 1, sessions: 0 })
    })

    test('a deleted session becomes unknown when its tombstone expires, also after a late setKvStatus', async () => {
      await createActive()
      await remove()
      await setKvStatus('too_short')
      await advance(hours(23))
      expect(await begin()).toEqual({ kind: 'deleted' })
      await advance(hours(1))
      expect(await begin()).toEqual({ kind: 'unknown' })
    })

    test.each([
      { name: 'shorter', ttlSeconds: 60 },
      { name: 'longer', ttlSeconds: 7200 },
    ])('setTtl with a $name TTL counts from now', async ({ ttlSeconds }) => {
      await createActive()
      await advance(hours(0.5))
      const before = await nowMs()
      const record = await setTtl(ttlSeconds)
      const after = await nowMs()

      expect(record?.ttlSeconds).toBe(ttlSeconds)
      expect(record?.expiresAtMs).toBeGreaterThanOrEqual(before + seconds(ttlSeconds))
      expect(record?.expiresAtMs).toBeLessThanOrEqual(after + seconds(ttlSeconds))
      expect(await get()).toEqual(record)
      await advance(seconds(ttlSeconds - 30))
      expect(await sweep()).toBe(0)
      await advance(seconds(30))
      expect(await sweep()).toBe(1)
    })

    test('a store keeps its identity', async () => {
      const identity = await store().identity()
      expect(identity).not.toBe('')
      expect(await store().identity()).toBe(identity)
    })

    test('ping resolves', async () => {
      await expect(store().ping()).resolves.toBeUndefined()
    })
  })
}
