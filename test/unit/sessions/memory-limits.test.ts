import { beforeEach, describe, expect, test } from '@jest/globals'
import { createMemorySessionStore } from '../../../src/sessions/memory/create-memory-session-store.ts'
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
  let evicted: number
  let store: SessionStore & RemovalQueue
  let under: StoreUnderTest

  beforeEach(() => {
    nowMs = 0
    evicted = 0
    store = createMemorySessionStore({
      maxSessions: 3,
      tombstoneSeconds: 1000,
      nowMs: () => nowMs,
      onEvicted: () => {
        evicted += 1
      },
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
    await fill()
    await storeKv(under, 'artefact-b', 1, key('b'))
    await store.begin(turn('a'))
    await store.complete(completed('turn-2', { key: key('a') }))
    await createActive(under, { key: key('d') })

    expect(await live()).toEqual(['a', 'c', 'd'])
    expect(await claimAll(under)).toEqual({ [`s:${key('b')}`]: '{"file":"artefact-b"}' })
    expect(evicted).toBe(1)
  })

  test('ends a session that had to go as if its time were over: its next turn starts it anew', async () => {
    await fill()
    await createActive(under, { key: key('d') })

    expect(await store.begin(turn('a'))).toMatchObject({ kind: 'expired' })
    expect(await store.complete(completed('turn-2', { key: key('a') }))).toMatchObject({ kind: 'completed' })
    expect(await live()).toEqual(['a', 'c', 'd'])
  })

  test('takes one whose time is over before any other', async () => {
    await fill()
    await store.setTtl({ key: key('c'), tenant: alice, ttlSeconds: 1 })
    await under.advance(seconds(1))
    await createActive(under, { key: key('d') })

    expect(await live()).toEqual(['a', 'b', 'd'])
    expect(evicted).toBe(0)
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
