import { beforeEach, describe, expect, test } from '@jest/globals'
import type { MemoryReading } from '../../../src/sessions/memory/process-memory.ts'
import { StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { memoryUnderTest } from '../../contract/sessions/memory-under-test.ts'
import { callsOn, sessionKey as key, type StoreUnderTest, seconds } from '../../contract/sessions/store-under-test.ts'

describe('a full memory store', () => {
  let evicted: string[]
  let under: StoreUnderTest
  const { abandon, advance, begin, claimAll, complete, create, createActive, list, remove, setTtl, storeKv } = callsOn(
    () => under,
  )

  beforeEach(() => {
    evicted = []
    const onEvicted = (what: string): void => void evicted.push(what)
    under = memoryUnderTest({ maxSessions: 3, tombstoneSeconds: 1000, onEvicted }, 0)
  })

  const beginOn = (name: string) => begin('turn-2', { key: key(name) })
  const completeOn = (name: string) => complete('turn-2', { key: key(name) })
  const fill = async (): Promise<void> => {
    for (const name of ['a', 'b', 'c']) await createActive({ key: key(name) })
  }
  const live = async (): Promise<readonly string[]> =>
    (await list()).records.map((record) => record.key.charAt(0)).sort()

  test('ends the least recently used session, and queues its removal', async () => {
    await fill()
    for (const name of ['a', 'b', 'c']) await storeKv(`artefact-${name}`, 1, { key: key(name) })
    for (const name of ['c', 'a']) {
      await beginOn(name)
      await completeOn(name)
    }
    await createActive({ key: key('d') })

    expect(await live()).toEqual(['a', 'c', 'd'])
    expect(await claimAll()).toEqual({ [`s:${key('b')}`]: '{"file":"artefact-b"}' })
    expect(evicted).toEqual(['session-count'])
  })

  test('ends a session as if it had expired, so that its next turn revives it', async () => {
    await fill()
    await createActive({ key: key('d') })

    expect(await beginOn('a')).toMatchObject({ kind: 'expired', cause: 'eviction' })
    expect(await completeOn('a')).toMatchObject({ kind: 'completed' })
    expect(await live()).toEqual(['a', 'c', 'd'])
  })

  test('ends an expired session before any other', async () => {
    await fill()
    await setTtl(1, { key: key('c') })
    await advance(seconds(1))
    await createActive({ key: key('d') })

    expect(await live()).toEqual(['a', 'b', 'd'])
    expect(evicted).toEqual([])
  })

  test('ends the least recently used session also after its KV was dropped, and when the clock was set back', async () => {
    await advance(seconds(60))
    await fill()
    await storeKv('artefact-a', 1, { key: key('a') })
    for (const name of ['a', 'b', 'c']) {
      await advance(seconds(1))
      await beginOn(name)
      await completeOn(name)
    }
    await advance(seconds(1))
    await under.store.dropArtefacts({ artefactIds: ['artefact-a'], reason: 'kv_missing' })
    await createActive({ key: key('d') })
    expect(await live()).toEqual(['b', 'c', 'd'])

    await advance(-seconds(30))
    await createActive({ key: key('e') })
    expect(await live()).toHaveLength(3)
  })

  test('ends no session that a turn holds, but one whose lease ran out', async () => {
    await fill()
    await beginOn('a')
    await beginOn('b')
    await createActive({ key: key('d') })
    expect(await live()).toEqual(['a', 'b', 'd'])

    await beginOn('d')
    await advance(seconds(60))
    expect(await create({ key: key('e') })).toMatchObject({ kind: 'created' })
    expect(await live()).toEqual(['b', 'd', 'e'])
  })

  test('refuses a new session while turns hold all sessions', async () => {
    await fill()
    for (const name of ['a', 'b', 'c']) await beginOn(name)
    await expect(create({ key: key('d') })).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await live()).toEqual(['a', 'b', 'c'])

    await abandon('turn-2', key('b'))
    expect(await create({ key: key('d') })).toMatchObject({ kind: 'created' })
    expect(await live()).toEqual(['a', 'c', 'd'])
  })

  test('keeps no more tombstones than sessions, and forgets the oldest first', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await createActive({ key: key(name) })
      await remove({ key: key(name) })
    }

    expect(await beginOn('a')).toEqual({ kind: 'unknown' })
    expect(await beginOn('b')).toEqual({ kind: 'deleted' })
  })

  test('keeps no more retry keys than sessions, and forgets the oldest first', async () => {
    const retryOf = (digest: string) =>
      ({ digest, bodyDigest: 'body', rememberMs: 10_000, use: 'find-or-record' }) as const
    for (const name of ['a', 'b', 'c', 'd']) await createActive({ key: key(name), retryOf: retryOf(name) })
    const again = (digest: string) => create({ key: key(`again-${digest}`), turnId: digest, retryOf: retryOf(digest) })

    expect(await again('d')).toMatchObject({ kind: 'existing' })
    expect(await again('a')).toMatchObject({ kind: 'created' })
  })
})

describe('a memory store in a process that is short of memory', () => {
  const megabytes = (count: number): number => count * 1_000_000
  let evicted: string[]
  let under: StoreUnderTest
  let isWatching: boolean
  let read: (reading: MemoryReading) => void
  const { advance, begin, counts, create, createActive, get, remove, store } = callsOn(() => under)

  beforeEach(async () => {
    evicted = []
    isWatching = false
    const watch = (onReading: (reading: MemoryReading) => void) => {
      isWatching = true
      read = onReading
      return () => {
        isWatching = false
      }
    }
    under = memoryUnderTest({ memory: { threshold: 0.85, watch }, onEvicted: (what: string) => evicted.push(what) })
    for (let index = 0; index < 1_000; index += 1) {
      await advance(1)
      await createActive({ key: key(`session-${index}`) })
    }
  })
  const sessions = async (): Promise<number> => (await counts()).sessions
  const bytes = async (): Promise<number> => (await store().sizes()).sessionBytes ?? 0
  const isLive = async (index: number): Promise<boolean> => (await get({ key: key(`session-${index}`) })) !== undefined
  const createNew = () => create({ key: key('new') })
  const evictAll = async (): Promise<void> => {
    while ((await store().evict(100)) === 100);
  }

  test('below the threshold, nothing is evicted', async () => {
    read({ usedBytes: megabytes(80), limitBytes: megabytes(100) })
    expect(await store().evict(100)).toBe(0)
    expect(await sessions()).toBe(1_000)
  })

  test('above the threshold, evict ends the least recently used sessions in steps, until the rest fits', async () => {
    const before = await bytes()
    read({ usedBytes: megabytes(85) + before / 4, limitBytes: megabytes(100) })
    expect(await store().evict(10)).toBe(10)
    await evictAll()
    expect(await bytes()).toBeLessThanOrEqual((before * 3) / 4)
    expect(await bytes()).toBeGreaterThan(before / 2)
    expect([await isLive(0), await isLive(999)]).toEqual([false, true])
    expect(new Set(evicted)).toEqual(new Set(['session-memory']))
  })

  test('one reading evicts at most half, since something else may fill the memory', async () => {
    const before = await bytes()
    read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    await evictAll()
    expect(await bytes()).toBeLessThanOrEqual(before / 2)
    expect(await bytes()).toBeGreaterThan(before / 3)
  })

  test('a new session evicts others, and is not refused while another can be evicted', async () => {
    read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    expect(await createNew()).toMatchObject({ kind: 'created' })
    expect(await sessions()).toBeLessThan(1_000)
    expect(await isLive(999)).toBe(true)
  })

  test('sessions in turns are not evicted, and a new one is refused', async () => {
    for (let index = 0; index < 1_000; index += 1) {
      await begin('turn', { key: key(`session-${index}`) })
    }
    read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    expect(await store().evict(100)).toBe(0)
    await expect(createNew()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await sessions()).toBe(1_000)
  })

  test('tombstones are evicted before live sessions', async () => {
    for (let index = 500; index < 1_000; index += 1) {
      await remove({ key: key(`session-${index}`) })
    }
    read({ usedBytes: megabytes(85) + 50_000, limitBytes: megabytes(100) })
    await evictAll()
    expect(await sessions()).toBe(500)
  })

  test('a later reading raises the limit again', async () => {
    read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    read({ usedBytes: megabytes(10), limitBytes: megabytes(100) })
    expect(await store().evict(100)).toBe(0)
    expect(await createNew()).toMatchObject({ kind: 'created' })
    expect(await sessions()).toBe(1_001)
  })

  test('close stops the watch', async () => {
    expect(isWatching).toBe(true)
    await store().close()
    expect(isWatching).toBe(false)
  })
})
