import { beforeEach, describe, expect, test } from '@jest/globals'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import {
  alice,
  claimAll,
  completed,
  createActive,
  type StoreUnderTest,
  seconds,
  sessionKey,
  storedKv,
  storeKv,
  testKvLimit,
} from './store-under-test.ts'

const artefactBytes = storedKv('any', 0).bytes
const thresholdBytes = testKvLimit.maxBytes * testKvLimit.threshold

/** What holds where the store has a limit for stored KV ({@link testKvLimit}). */
export const describeKvLimit = (make: () => Promise<StoreUnderTest>): void => {
  describe('a limit of stored KV', () => {
    let under: StoreUnderTest
    beforeEach(async () => {
      under = await make()
    })

    const key = sessionKey
    const keyTurn = (name: string) => ({ key: key(name), tenant: alice, turnId: `turn-of-${name}`, leaseMs: 60_000 })
    /** Sessions that stored KV one second after the other. */
    const store = async (...names: readonly string[]): Promise<void> => {
      for (const name of names) {
        await createActive(under, { key: key(name) })
        await storeKv(under, `artefact-${name}`, 1, key(name))
        await under.advance(seconds(1))
      }
    }
    const noteOf = async (name: string): Promise<string | undefined> => {
      const record = await under.store.get({ key: key(name), tenant: alice })
      return record?.kv === undefined ? record?.kvStatus : 'stored'
    }
    const notesOf = (...names: readonly string[]) => Promise.all(names.map(noteOf))
    const kvBytes = async (): Promise<number | undefined> => (await under.store.sizes()).kvBytes
    const own = (name: string): { readonly key: SessionKey; readonly tenant: typeof alice } => ({
      key: key(name),
      tenant: alice,
    })

    test('nothing goes while it holds', async () => {
      await store('a', 'b', 'c')
      expect(await kvBytes()).toBe(3 * artefactBytes)
      expect(await under.store.evict(100)).toBe(0)
      expect(await claimAll(under)).toEqual({})
    })

    test('above the threshold, what was used least recently goes, until it holds', async () => {
      await store('a', 'b', 'c', 'd')
      expect(await kvBytes()).toBeGreaterThan(thresholdBytes)
      expect(await under.store.evict(100)).toBe(1)

      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['kv_evicted', 'stored', 'stored', 'stored'])
      expect(await kvBytes()).toBe(3 * artefactBytes)
      expect(await claimAll(under)).toEqual({ 'a:artefact-a': storedKv('artefact-a', 0).payload })
    })

    test('what is evicted goes in as many steps as asked for', async () => {
      const names = Array.from({ length: 10 }, (_, index) => `session-${index}`)
      for (const name of names) {
        await createActive(under, { key: key(name) })
        await storeKv(under, `artefact-${name}`, 1, key(name), testKvLimit.maxBytes / 10)
        await under.advance(seconds(1))
      }
      const steps = [await under.store.evict(1), await under.store.evict(1), await under.store.evict(1)]
      expect(steps).toEqual([1, 1, 0])
      expect(await notesOf('session-0', 'session-1', 'session-2')).toEqual(['kv_evicted', 'kv_evicted', 'stored'])
    })

    test('a commit makes room by itself, so that the limit is never exceeded', async () => {
      await store('a', 'b', 'c', 'd', 'e')
      expect(await notesOf('a', 'b', 'c', 'd', 'e')).toEqual(['kv_evicted', 'stored', 'stored', 'stored', 'stored'])
      expect(await kvBytes()).toBe(4 * artefactBytes)
    })

    test('a large artefact goes before small ones that were idle for little longer', async () => {
      for (const name of ['small-1', 'small-2', 'large']) await createActive(under, { key: key(name) })
      await storeKv(under, 'artefact-1', 1, key('small-1'), 100_000)
      await storeKv(under, 'artefact-2', 1, key('small-2'), 100_000)
      await under.advance(seconds(1))
      await storeKv(under, 'artefact-3', 1, key('large'), thresholdBytes)
      await under.advance(seconds(10))
      await under.store.evict(100)
      expect(await notesOf('small-1', 'small-2', 'large')).toEqual(['stored', 'stored', 'kv_evicted'])
    })

    test('a small artefact goes before a large one when it was idle for very much longer', async () => {
      for (const name of ['small', 'large']) await createActive(under, { key: key(name) })
      await storeKv(under, 'artefact-1', 1, key('small'), 1_000_000)
      await under.advance(seconds(1_000))
      await storeKv(under, 'artefact-2', 1, key('large'), thresholdBytes)
      await under.advance(seconds(1))
      await under.store.evict(100)
      expect(await notesOf('small', 'large')).toEqual(['kv_evicted', 'stored'])
    })

    test.each([
      {
        name: 'a turn that stored nothing',
        use: () => under.store.complete(completed('turn-of-a', { key: key('a') })),
      },
      { name: 'a turn that failed', use: () => under.store.abandon({ key: key('a'), turnId: 'turn-of-a' }) },
      { name: 'a turn whose end is never reported', use: () => under.advance(seconds(60)) },
    ])('KV that $name has used goes after KV that was idle', async ({ use }) => {
      await store('a', 'b', 'c', 'd')
      await under.store.begin(keyTurn('a'))
      await use()
      await under.advance(seconds(1))
      expect(await under.store.evict(100)).toBe(1)
      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'kv_evicted', 'stored', 'stored'])
    })

    test('KV used by a turn among others of its session goes after KV that was idle', async () => {
      await store('a', 'b', 'c', 'd')
      await under.store.begin(keyTurn('a'))
      await under.store.begin({ ...keyTurn('a'), turnId: 'other' })
      for (const turnId of ['turn-of-a', 'other']) {
        await under.advance(seconds(1))
        await under.store.complete(completed(turnId, { key: key('a') }))
      }
      await under.advance(seconds(1))
      await under.store.evict(100)
      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'kv_evicted', 'stored', 'stored'])
    })

    test('a commit evicts as many as it takes', async () => {
      const names = Array.from({ length: 300 }, (_, index) => `session-${index}`)
      for (const name of names) {
        await createActive(under, { key: key(name) })
        await storeKv(under, `artefact-${name}`, 1, key(name), testKvLimit.maxBytes / 300)
      }
      await createActive(under, { key: key('large') })
      expect(await storeKv(under, 'artefact-large', 1, key('large'), testKvLimit.maxBytes)).toBe(true)

      expect(await kvBytes()).toBe(testKvLimit.maxBytes)
      expect(Object.keys(await claimAll(under))).toHaveLength(300)
    })

    test('KV of a session in a turn stays, however long it was idle', async () => {
      await store('a', 'b', 'c', 'd')
      await under.store.begin(keyTurn('a'))
      await under.store.evict(100)
      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'kv_evicted', 'stored', 'stored'])
    })

    test('KV whose session’s turn has ended may go again', async () => {
      await store('a', 'b')
      for (const name of ['a', 'b']) await under.store.begin(keyTurn(name))
      await createActive(under, { key: key('large') })
      await storeKv(under, 'artefact-large', 1, key('large'), testKvLimit.maxBytes - 2 * artefactBytes)
      await under.store.begin(keyTurn('large'))
      expect(await under.store.evict(100)).toBe(0)

      await under.store.complete(completed('turn-of-b', { key: key('b') }))
      await under.advance(seconds(1))
      await under.store.evict(100)
      expect(await notesOf('a', 'b', 'large')).toEqual(['stored', 'kv_evicted', 'stored'])
    })

    test('a commit that finds only KV of sessions in turns is refused, says so, and leaves nothing', async () => {
      await store('a', 'b', 'c', 'd')
      for (const name of ['a', 'b', 'c', 'd']) await under.store.begin(keyTurn(name))
      await createActive(under, { key: key('e') })
      expect(await storeKv(under, 'artefact-e', 1, key('e'))).toBe(false)

      expect(await notesOf('a', 'b', 'c', 'd', 'e')).toEqual(['stored', 'stored', 'stored', 'stored', 'store_full'])
      expect(await claimAll(under)).toEqual({ 'a:artefact-e': storedKv('artefact-e', 0).payload })
    })

    test('an artefact that can never fit is refused, and takes nothing from others', async () => {
      await store('a', 'b')
      expect(await storeKv(under, 'artefact-huge', 2, key('b'), testKvLimit.maxBytes + 1)).toBe(false)
      expect(await notesOf('a', 'b')).toEqual(['stored', 'stored'])
    })

    test('what a session had stored makes room for what replaces it', async () => {
      await store('a', 'b', 'c', 'd')
      expect(await storeKv(under, 'artefact-d2', 2, key('d'))).toBe(true)
      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'stored', 'stored', 'stored'])
      expect(await kvBytes()).toBe(4 * artefactBytes)
    })

    test('KV of sessions whose time is over goes first', async () => {
      await store('a', 'b', 'c', 'd')
      await under.store.setTtl({ ...own('d'), ttlSeconds: 1 })
      await under.advance(seconds(1))
      expect(await under.store.evict(100)).toBe(0)
      expect(await notesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'stored', 'stored', undefined])
      expect(await under.store.begin(keyTurn('d'))).toMatchObject({ kind: 'expired' })
    })

    test.each([
      { name: 'deleted', end: (name: string) => under.store.remove(own(name)) },
      { name: 'expired', end: () => under.advance(seconds(3600)).then(() => under.store.expireDue(100)) },
      {
        name: 'told that it is damaged',
        end: (name: string) =>
          under.store.dropKv({ key: key(name), artefactId: `artefact-${name}`, reason: 'kv_missing' }),
      },
      {
        name: 'told that it is of no use',
        end: (name: string) => under.store.dropArtefacts({ artefactIds: [`artefact-${name}`], reason: 'kv_stale' }),
      },
    ])('KV of a session that is $name counts no more', async ({ end }) => {
      await store('a')
      await end('a')
      expect(await kvBytes()).toBe(0)
    })

    test('after its KV was evicted, a session stores again', async () => {
      await store('a', 'b', 'c', 'd')
      await under.store.evict(100)
      expect(await storeKv(under, 'artefact-a2', 2, key('a'))).toBe(true)
      expect(await noteOf('a')).toBe('stored')
    })
  })

  describe('artefacts of no use', () => {
    test('leave the sessions that have them, by their names alone', async () => {
      const under = await make()
      for (const name of ['a', 'b']) {
        await createActive(under, { key: sessionKey(name) })
        await storeKv(under, `artefact-${name}`, 1, sessionKey(name))
      }
      await storeKv(under, 'artefact-b2', 2, sessionKey('b'))
      const artefactIds = ['artefact-a', 'artefact-b', 'artefact-unknown']
      expect(await under.store.dropArtefacts({ artefactIds, reason: 'kv_stale' })).toBe(1)

      const records = await Promise.all(
        ['a', 'b'].map((name) => under.store.get({ key: sessionKey(name), tenant: alice })),
      )
      expect(records).toMatchObject([
        { kv: undefined, kvStatus: 'kv_stale' },
        { kv: { artefactId: 'artefact-b2' }, kvStatus: undefined },
      ])
      expect(await claimAll(under)).toEqual({ 'a:artefact-a': storedKv('artefact-a', 0).payload })
    })
  })
}
