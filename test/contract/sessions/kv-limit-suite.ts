import { describe, expect, test } from '@jest/globals'
import { payloadOf, type StoreCalls, seconds, sessionKey, storedKv, testKvLimit } from './store-under-test.ts'

const artefactBytes = storedKv('any').bytes
const { maxBytes, threshold } = testKvLimit
const key = sessionKey

/** Which KV a store with {@link testKvLimit} evicts. */
export const describeKvLimit = (calls: StoreCalls): void => {
  const { abandon, advance, begin, claimAll, complete, createActive, get, setTtl, store, storeKv } = calls

  describe('the limit of stored KV', () => {
    const storeFor = async (name: string, bytes = artefactBytes): Promise<boolean> => {
      await createActive({ key: key(name) })
      return await storeKv(`artefact-${name}`, 1, { key: key(name), bytes })
    }
    /** One session after the other, a second apart. */
    const storeEach = async (...names: readonly string[]): Promise<void> => {
      for (const name of names) {
        await storeFor(name)
        await advance(seconds(1))
      }
    }
    const beginOn = (name: string, turnId = 'turn-2') => begin(turnId, { key: key(name) })
    const completeOn = (name: string, turnId = 'turn-2') => complete(turnId, { key: key(name) })
    const stateOf = async (name: string): Promise<string | undefined> => {
      const record = await get({ key: key(name) })
      return record?.kv === undefined ? record?.kvStatus : 'stored'
    }
    const statesOf = (...names: readonly string[]) => Promise.all(names.map(stateOf))
    const kvBytes = async (): Promise<number | undefined> => (await store().sizes()).kvBytes

    test('above the threshold, the least recently used KV is evicted, and its session can store again', async () => {
      await storeEach('a', 'b', 'c', 'd')
      expect(await kvBytes()).toBeGreaterThan(maxBytes * threshold)
      expect(await store().evict(100)).toBe(1)

      expect(await statesOf('a', 'b', 'c', 'd')).toEqual(['kv_evicted', 'stored', 'stored', 'stored'])
      expect(await kvBytes()).toBe(3 * artefactBytes)
      expect(await claimAll()).toEqual({ 'a:artefact-a': payloadOf('artefact-a') })
      expect(await storeKv('artefact-a2', 2, { key: key('a') })).toBe(true)
      expect(await stateOf('a')).toBe('stored')
    })

    test('evict ends at its limit of steps', async () => {
      for (let index = 0; index < 10; index++) {
        await storeFor(`session-${index}`, maxBytes / 10)
        await advance(seconds(1))
      }
      expect([await store().evict(1), await store().evict(1), await store().evict(1)]).toEqual([1, 1, 0])
      expect(await statesOf('session-0', 'session-1', 'session-2')).toEqual(['kv_evicted', 'kv_evicted', 'stored'])
    })

    test('a commit evicts the KV of 60 sessions if it needs their room', async () => {
      for (let index = 0; index < 60; index++) await storeFor(`session-${index}`, maxBytes / 60)
      expect(await storeFor('large', maxBytes)).toBe(true)

      expect(await kvBytes()).toBe(maxBytes)
      expect(Object.keys(await claimAll())).toHaveLength(60)
    })

    test('a commit evicts nothing while KV of expired sessions is there', async () => {
      await storeFor('live', 1)
      for (let index = 0; index < 40; index++) await storeFor(`session-${index}`, maxBytes / 50)
      for (let index = 0; index < 40; index++) await setTtl(10, { key: key(`session-${index}`) })
      await advance(seconds(10))

      expect(await storeFor('large', maxBytes - 1)).toBe(true)
      expect(await statesOf('live', 'large')).toEqual(['stored', 'stored'])
    })

    test.each([
      { name: 'large KV before small KV that was idle a little longer', idleSeconds: [1, 10], evicted: 'large' },
      { name: 'small KV before large KV when it was idle much longer', idleSeconds: [1000, 1], evicted: 'small' },
    ])('eviction takes $name', async ({ idleSeconds: [between = 0, after = 0], evicted }) => {
      await storeFor('small', 1_000_000)
      await advance(seconds(between))
      await storeFor('large', maxBytes * threshold)
      await advance(seconds(after))
      await store().evict(100)

      expect(await stateOf('small')).toBe(evicted === 'small' ? 'kv_evicted' : 'stored')
      expect(await stateOf('large')).toBe(evicted === 'large' ? 'kv_evicted' : 'stored')
    })

    test.each([
      { name: 'a running turn', use: () => Promise.resolve() },
      { name: 'a turn that stored nothing', use: () => completeOn('a') },
      { name: 'a turn that failed', use: () => abandon('turn-2', key('a')) },
      { name: 'a turn whose end is never reported', use: () => advance(seconds(60)) },
      {
        name: 'overlapping turns',
        use: async () => {
          await beginOn('a', 'turn-3')
          for (const turnId of ['turn-2', 'turn-3']) {
            await advance(seconds(1))
            await completeOn('a', turnId)
          }
        },
      },
    ])('KV used by $name is evicted after idle KV', async ({ use }) => {
      await storeEach('a', 'b', 'c', 'd')
      await beginOn('a')
      await use()
      await advance(seconds(1))
      expect(await store().evict(100)).toBe(1)
      expect(await statesOf('a', 'b', 'c', 'd')).toEqual(['stored', 'kv_evicted', 'stored', 'stored'])
    })

    test('an artefact larger than the limit is refused, and evicts nothing', async () => {
      await storeEach('a', 'b')
      expect(await storeKv('artefact-huge', 2, { key: key('b'), bytes: maxBytes + 1 })).toBe(false)
      expect(await statesOf('a', 'b')).toEqual(['stored', 'stored'])
    })
  })
}
