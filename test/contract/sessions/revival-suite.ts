import { describe, expect, test } from '@jest/globals'
import { alice, hours, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

export const describeRevival = (calls: StoreCalls): void => {
  const { abandon, advance, begin, claimAll, complete, createActive, drain, get, list } = calls
  const { nowMs, remove, setTtl, storeKv, sweep } = calls

  describe('revival of an expired session', () => {
    /** An expired session on which `turn-2` has begun. */
    const createExpired = async (): Promise<void> => {
      await createActive()
      await advance(hours(1))
      await begin()
    }

    test('a completed turn starts the session anew with its last TTL', async () => {
      const first = await createActive({ ttlSeconds: 600 })
      await storeKv('artefact-1')
      await advance(seconds(600))
      await begin()
      const before = await nowMs()
      const usage = { prompt: 7, output: 8, cached: 0 }
      const outcome = await complete('turn-2', { pod: '10.0.0.3:8000', usage })
      const record = await get()

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
        tokens: usage,
        pod: '10.0.0.3:8000',
        kv: undefined,
        kvStatus: undefined,
      })
      expect(record?.createdAtMs).toBeGreaterThanOrEqual(before)
      expect(await list()).toEqual({ records: [record], hasMore: false })
      await advance(seconds(600))
      expect(await sweep()).toBe(1)
    })

    test('a revived session keeps its KV in pods, and its earlier artefact is removed', async () => {
      await createActive()
      await storeKv('artefact-1')
      await advance(hours(1))
      await begin()
      await complete()

      expect(await claimAll()).toEqual({ 'a:artefact-1': '{"file":"artefact-1"}' })
    })

    test('an abandoned turn leaves the session expired, and queues a removal', async () => {
      await createExpired()
      await drain()
      await abandon()

      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await complete()).toEqual({ kind: 'gone' })
      expect(await begin('turn-3')).toMatchObject({ kind: 'expired' })
    })

    test('a tombstone expires after its time, but not while a turn may revive its session', async () => {
      await createActive({ key: sessionKey('idle') })
      await createActive()
      await advance(hours(1))
      expect(await sweep()).toBe(2)
      await advance(hours(24) - seconds(30))
      await begin()
      await advance(seconds(45))

      expect(await begin('turn-2', { key: sessionKey('idle') })).toEqual({ kind: 'unknown' })
      expect(await complete()).toMatchObject({ kind: 'completed', record: { turns: 1 } })
    })

    test('a session that is deleted before its reviving turn completes stays deleted', async () => {
      await createExpired()
      await drain()

      expect(await remove()).toBe(true)
      expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
      expect(await complete()).toEqual({ kind: 'gone' })
      expect(await begin('turn-3')).toEqual({ kind: 'deleted' })
      expect(await remove()).toBe(false)
    })

    test('a revived session outlives the time of its tombstone', async () => {
      await createExpired()
      await complete()
      await setTtl(7 * 86_400)
      await advance(hours(48))

      expect(await get()).toMatchObject({ turns: 1 })
    })
  })
}
