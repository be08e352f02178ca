import { describe, expect, test } from '@jest/globals'
import type { TenantLimits } from '../../../src/sessions/limits.ts'
import { artefactOf, mallory, retryDigest, type StoreCalls, seconds, session, sessionKey } from './store-under-test.ts'

const key = sessionKey

/** What tenants may have at a time. Together with everything else: `test/fuzz/sessions/session-stores.test.ts`. */
export const describeTenantLimits = (calls: StoreCalls, limitTo: (limits: TenantLimits) => void): void => {
  const { abandon, advance, begin, beginNamed, complete, create, createActive, get, remove, setTtl, storeKv } = calls

  describe('the limits of a tenant', () => {
    test('sessions: another one is refused until one has ended, and other tenants go on', async () => {
      limitTo({ maxSessions: 2 })
      await createActive({ key: key('a') })
      await createActive({ key: key('b') })
      const refused = { kind: 'limited', limit: 'sessions' }
      expect(await create({ key: key('c') })).toEqual(refused)
      expect(await beginNamed('turn-3', { key: key('named') })).toEqual(refused)
      expect(await create({ key: key('d'), tenant: mallory })).toMatchObject({ kind: 'created' })
      expect(await begin('turn-2', { key: key('a') })).toMatchObject({ kind: 'active' })

      await remove({ key: key('b') })
      expect(await create({ key: key('c') })).toMatchObject({ kind: 'created' })
    })

    test('sessions: expired ones give way without a sweep, and start anew only where there is room', async () => {
      limitTo({ maxSessions: 1 })
      await createActive({ key: key('a'), ttlSeconds: 10 })
      await advance(seconds(10))
      expect(await create({ key: key('b'), turnId: 'turn-2' })).toMatchObject({ kind: 'created' })
      expect(await begin('turn-3', { key: key('a') })).toEqual({ kind: 'limited', limit: 'sessions' })

      await abandon('turn-2', key('b'))
      expect(await begin('turn-3', { key: key('a') })).toMatchObject({ kind: 'expired' })
    })

    test('sessions: a repeated create finds its session at the limit', async () => {
      limitTo({ maxSessions: 1 })
      const retryOf = { digest: retryDigest, bodyDigest: 'body', rememberMs: 60_000, use: 'find-or-record' } as const
      await create({ retryOf })
      expect(await create({ key: key('other-session'), turnId: 'turn-2', retryOf })).toMatchObject({
        kind: 'existing',
        record: { key: session },
      })
    })

    test('turns: as many at a time, over all sessions, until they end or their lease does', async () => {
      limitTo({ maxTurns: 2 })
      const refused = { kind: 'limited', limit: 'turns' }
      await createActive({ key: key('a') })
      await createActive({ key: key('b') })
      await begin('turn-2', { key: key('a') })
      await begin('turn-3', { key: key('b'), leaseMs: 90_000 })
      expect(await begin('turn-4', { key: key('a') })).toEqual(refused)
      expect(await create({ key: key('c'), turnId: 'turn-5' })).toEqual(refused)
      expect(await beginNamed('turn-6', { key: key('named') })).toEqual(refused)
      expect(await get({ key: key('c') })).toBeUndefined()
      expect(await create({ key: key('d'), tenant: mallory })).toMatchObject({ kind: 'created' })

      await complete('turn-2', { key: key('a') })
      expect(await begin('turn-4', { key: key('a') })).toMatchObject({ kind: 'active' })
      await abandon('turn-4', key('a'))
      expect(await beginNamed('turn-6', { key: key('named') })).toMatchObject({ kind: 'created' })
      expect(await beginNamed('turn-7', { key: key('named') })).toEqual(refused)
      await advance(seconds(60))
      expect(await begin('turn-7', { key: key('a') })).toMatchObject({ kind: 'active' })
      expect(await begin('turn-8', { key: key('a') })).toEqual(refused)
    })

    test('turns: one whose session is deleted meanwhile counts until it ends', async () => {
      limitTo({ maxTurns: 1 })
      await createActive({ key: key('a') })
      await createActive({ key: key('b') })
      await begin('turn-2', { key: key('a') })
      await remove({ key: key('a') })
      expect(await begin('turn-3', { key: key('b') })).toMatchObject({ kind: 'limited' })
      expect(await complete('turn-2', { key: key('a') })).toEqual({ kind: 'gone' })
      expect(await begin('turn-3', { key: key('b') })).toMatchObject({ kind: 'active' })
    })

    test('turns: what begins nothing is not counted', async () => {
      limitTo({ maxTurns: 1 })
      await createActive({ key: key('foreign'), tenant: mallory })
      await begin('turn-2', { key: key('unknown') })
      await begin('turn-3', { key: key('foreign') })
      await beginNamed('turn-4', { key: key('foreign') })
      expect(await create()).toMatchObject({ kind: 'created' })
    })

    test('stored bytes: KV beyond them is not stored, and evicts nothing', async () => {
      limitTo({ maxStoredBytes: 100 })
      for (const name of ['a', 'b', 'c']) await createActive({ key: key(name) })
      await createActive({ key: key('other'), tenant: mallory })
      const kvOf = async (name: string) => {
        const record = await get({ key: key(name) })
        return record?.kv?.bytes ?? record?.kvStatus
      }
      expect(await storeKv('kv-a', 1, { key: key('a'), bytes: 60 })).toBe(true)
      expect(await storeKv('kv-b', 1, { key: key('b'), bytes: 41 })).toBe(false)
      expect(await storeKv('kv-a2', 2, { key: key('a'), bytes: 100 })).toBe(true)
      expect(await storeKv('kv-a3', 3, { key: key('a'), bytes: 101 })).toBe(false)
      expect([await kvOf('a'), await kvOf('b')]).toEqual([100, 'tenant_full'])
      expect(await storeKv('kv-other', 1, { key: key('other'), tenant: mallory, bytes: 100 })).toBe(true)

      await calls.store().dropArtefacts({ artefactIds: [artefactOf('kv-a2', key('a'))], reason: 'stale' })
      expect(await storeKv('kv-b2', 2, { key: key('b'), bytes: 100 })).toBe(true)
      await setTtl(1, { key: key('b') })
      await advance(seconds(1))
      await calls.sweep()
      expect(await storeKv('kv-c', 1, { key: key('c'), bytes: 100 })).toBe(true)
    })

    test('stored bytes: no session begins while the KV of the last turn would still not fit', async () => {
      limitTo({ maxStoredBytes: 100 })
      await createActive({ key: key('a') })
      await createActive({ key: key('b') })
      await storeKv('kv-a', 1, { key: key('a'), bytes: 90 })
      await storeKv('kv-b', 1, { key: key('b'), bytes: 20 })
      const refused = { kind: 'limited', limit: 'stored-bytes' }
      expect(await create()).toEqual(refused)
      expect(await beginNamed('turn-3', { key: key('named') })).toEqual(refused)
      expect(await begin('turn-4', { key: key('a') })).toMatchObject({ kind: 'active' })

      await storeKv('kv-b2', 2, { key: key('b'), bytes: 5 })
      expect(await create({ key: key('c') })).toMatchObject({ kind: 'created' })
      await storeKv('kv-b3', 3, { key: key('b'), bytes: 20 })
      expect(await create({ key: key('d') })).toEqual(refused)
      await remove({ key: key('a') })
      expect(await create({ key: key('d') })).toMatchObject({ kind: 'created' })
    })

    test('stored bytes: KV larger than all of them keeps nobody from beginning a session', async () => {
      limitTo({ maxStoredBytes: 100 })
      await createActive({ key: key('a') })
      await storeKv('kv-a', 1, { key: key('a'), bytes: 101 })
      expect(await create()).toMatchObject({ kind: 'created' })
    })

    test('stored bytes: KV that was stored before there was a limit counts after the first round', async () => {
      for (const name of ['a', 'b']) await createActive({ key: key(name) })
      await storeKv('kv-a', 1, { key: key('a'), bytes: 90 })
      limitTo({ maxStoredBytes: 100 })
      while (await calls.store().recount(10)) {}
      expect(await storeKv('kv-b', 1, { key: key('b'), bytes: 20 })).toBe(false)
      await remove({ key: key('a') })
      expect(await storeKv('kv-b2', 2, { key: key('b'), bytes: 100 })).toBe(true)
    })
  })
}
