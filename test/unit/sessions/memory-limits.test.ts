import { beforeEach, describe, expect, test } from '@jest/globals'
import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
import type { MemoryReading } from '../../../src/sessions/memory/process-memory.ts'
import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import { type SessionStore, StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import {
  alice,
  aTurn,
  claimAll,
  completed,
  createActive,
  newSession,
  type StoreUnderTest,
  seconds,
  sessionKey,
  storeKv,
} from '../../contract/sessions/store-under-test.ts'

describe('a memory store that is full', () => {
  let nowMs: number
  let evicted: string[]
  let store: SessionStore & RemovalQueue
  let under: StoreUnderTest

  beforeEach(() => {
    nowMs = 0
    evicted = []
    store = createMemorySessionStore({
      maxSessions: 3,
      tombstoneSeconds: 1000,
      nowMs: () => nowMs,
      onEvicted: (what) => evicted.push(what),
    })
    under = {
      store,
      nowMs: async () => nowMs,
      advance: async (milliseconds) => {
        nowMs += milliseconds
      },
    }
  })

  const key = sessionKey
  const turn = (name: string, turnId = 'turn-2') => ({ ...aTurn(turnId), key: key(name) })
  const fill = async (): Promise<void> => {
    for (const name of ['a', 'b', 'c']) await createActive(under, { key: key(name) })
  }
  const live = async (): Promise<readonly string[]> => {
    const { records } = await store.list({ tenant: alice, limit: 100, after: undefined })
    return records.map((record) => record.key.replaceAll('-', '')).sort()
  }

  test('makes room by the session that was not used for the longest time, and queues its removal', async () => {
    for (const name of ['a', 'b', 'c']) {
      await createActive(under, { key: key(name) })
      await storeKv(under, `artefact-${name}`, 1, key(name))
    }
    await store.begin(turn('c'))
    await store.complete(completed('turn-2', { key: key('c') }))
    await store.begin(turn('a'))
    await store.complete(completed('turn-2', { key: key('a') }))
    await createActive(under, { key: key('d') })

    expect(await live()).toEqual(['a', 'c', 'd'])
    expect(await claimAll(under)).toEqual({ [`s:${key('b')}`]: '{"file":"artefact-b"}' })
    expect(evicted).toEqual(['session-count'])
  })

  test('ends a session that had to go as if its time were over: its next turn starts it anew', async () => {
    await fill()
    await createActive(under, { key: key('d') })

    expect(await store.begin(turn('a'))).toMatchObject({ kind: 'expired', cause: 'eviction' })
    expect(await store.complete(completed('turn-2', { key: key('a') }))).toMatchObject({ kind: 'completed' })
    expect(await live()).toEqual(['a', 'c', 'd'])
  })

  test('takes one whose time is over before any other', async () => {
    await fill()
    await store.setTtl({ key: key('c'), tenant: alice, ttlSeconds: 1 })
    await under.advance(seconds(1))
    await createActive(under, { key: key('d') })

    expect(await live()).toEqual(['a', 'b', 'd'])
    expect(evicted).toEqual([])
  })

  test('never takes one that a turn holds', async () => {
    await fill()
    await store.begin(turn('a'))
    await store.begin(turn('b'))
    await createActive(under, { key: key('d') })

    expect(await live()).toEqual(['a', 'b', 'd'])
  })

  test('takes one whose lease ran out', async () => {
    await fill()
    for (const name of ['a', 'b', 'c']) await store.begin(turn(name))
    await under.advance(seconds(60))

    expect(await store.create(newSession({ key: key('d') }))).toMatchObject({ kind: 'created' })
    expect(await live()).toEqual(['b', 'c', 'd'])
  })

  test('refuses a new session while turns hold all of them', async () => {
    await fill()
    for (const name of ['a', 'b', 'c']) await store.begin(turn(name))
    await expect(store.create(newSession({ key: key('d') }))).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await live()).toEqual(['a', 'b', 'c'])

    await store.abandon({ key: key('b'), turnId: 'turn-2' })
    expect(await store.create(newSession({ key: key('d') }))).toMatchObject({ kind: 'created' })
    expect(await live()).toEqual(['a', 'c', 'd'])
  })

  test('keeps no more tombstones than sessions, and forgets the oldest first', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await createActive(under, { key: key(name) })
      await store.remove({ key: key(name), tenant: alice })
    }

    expect(await store.begin(turn('a'))).toEqual({ kind: 'unknown' })
    expect(await store.begin(turn('b'))).toEqual({ kind: 'deleted' })
  })

  test('keeps no more retry keys than sessions, and forgets the oldest first', async () => {
    const retryOf = (digest: string) =>
      ({ digest, bodyDigest: 'body', rememberMs: 10_000, use: 'find-or-record' }) as const
    for (const name of ['a', 'b', 'c', 'd']) {
      await createActive(under, { key: key(name), retryOf: retryOf(name) })
    }
    const again = (digest: string) =>
      store.create(newSession({ key: key(`again-${digest}`), turnId: digest, retryOf: retryOf(digest) }))

    expect(await again('d')).toMatchObject({ kind: 'existing' })
    expect(await again('a')).toMatchObject({ kind: 'created' })
  })
})

describe('a memory store in a process whose memory is short', () => {
  const makeStore = (nowMs: () => number) => {
    let read: (reading: MemoryReading) => void = () => {}
    let isWatching = false
    const evicted: string[] = []
    const store = createMemorySessionStore({
      nowMs,
      memory: {
        threshold: 0.85,
        watch: {
          start: (onReading) => {
            isWatching = true
            read = onReading
          },
          stop: () => {
            isWatching = false
          },
        },
      },
      onEvicted: (what) => evicted.push(what),
    })
    return { store, evicted, isWatching: () => isWatching, read: (reading: MemoryReading) => read(reading) }
  }
  const megabytes = (count: number): number => count * 1_000_000
  let nowMs = 0
  let made: ReturnType<typeof makeStore>
  beforeEach(async () => {
    nowMs = 0
    made = makeStore(() => nowMs)
    const under = { store: made.store, nowMs: async () => nowMs, advance: async () => {} }
    for (let index = 0; index < 1_000; index += 1) {
      nowMs += 1
      await createActive(under, { key: sessionKey(`session-${index}`) })
    }
  })
  const sessions = async (): Promise<number> => (await made.store.counts()).sessions
  const bytes = async (): Promise<number> => (await made.store.sizes()).sessionBytes ?? 0
  const isLive = async (index: number): Promise<boolean> =>
    (await made.store.get({ key: sessionKey(`session-${index}`), tenant: alice })) !== undefined
  const create = () => made.store.create(newSession({ key: sessionKey('new') }))

  test('nothing goes below the threshold', async () => {
    made.read({ usedBytes: megabytes(80), limitBytes: megabytes(100) })
    expect(await made.store.evict(100)).toBe(0)
    expect(await sessions()).toBe(1_000)
  })

  test('above the threshold as much goes as is too much, the least recently used first, in steps', async () => {
    const before = await bytes()
    made.read({ usedBytes: megabytes(85) + before / 4, limitBytes: megabytes(100) })
    expect(await made.store.evict(10)).toBe(10)
    while ((await made.store.evict(100)) === 100);
    expect(await bytes()).toBeLessThanOrEqual((before * 3) / 4)
    expect(await bytes()).toBeGreaterThan(before / 2)
    expect([await isLive(0), await isLive(999)]).toEqual([false, true])
    expect(new Set(made.evicted)).toEqual(new Set(['session-memory']))
  })

  test('one reading never ends more than half, since something else may fill the memory', async () => {
    const before = await bytes()
    made.read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    while ((await made.store.evict(100)) === 100);
    expect(await bytes()).toBeLessThanOrEqual(before / 2)
    expect(await bytes()).toBeGreaterThan(before / 3)
  })

  test('a session that is added makes room by itself, and is never refused while another can go', async () => {
    made.read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    expect(await create()).toMatchObject({ kind: 'created' })
    expect(await sessions()).toBeLessThan(1_000)
    expect(await isLive(999)).toBe(true)
  })

  test('sessions in turns stay, and are all there can be', async () => {
    for (let index = 0; index < 1_000; index += 1) {
      await made.store.begin({ key: sessionKey(`session-${index}`), tenant: alice, turnId: 'turn', leaseMs: 60_000 })
    }
    made.read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    expect(await made.store.evict(100)).toBe(0)
    await expect(create()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await sessions()).toBe(1_000)
  })

  test('what is remembered of deleted sessions goes before sessions that live', async () => {
    for (let index = 500; index < 1_000; index += 1) {
      await made.store.remove({ key: sessionKey(`session-${index}`), tenant: alice })
    }
    made.read({ usedBytes: megabytes(85) + 50_000, limitBytes: megabytes(100) })
    while ((await made.store.evict(100)) === 100);
    expect(await sessions()).toBe(500)
  })

  test('a later reading lifts the limit again', async () => {
    made.read({ usedBytes: megabytes(1_000), limitBytes: megabytes(100) })
    made.read({ usedBytes: megabytes(10), limitBytes: megabytes(100) })
    expect(await made.store.evict(100)).toBe(0)
    expect(await create()).toMatchObject({ kind: 'created' })
    expect(await sessions()).toBe(1_001)
  })

  test('the watch ends with the store', async () => {
    expect(made.isWatching()).toBe(true)
    await made.store.close()
    expect(made.isWatching()).toBe(false)
  })
})
