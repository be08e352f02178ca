import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../../src/sessions/session-store.ts'
import { eventually } from '../../support/eventually.ts'
import { redisNowMs } from './age-redis-store.ts'
import {
  announceFor,
  aTurn,
  completed,
  createActive,
  newSession,
  owned,
  type StoreUnderTest,
  session,
  sessionKey,
  storedKv,
} from './store-under-test.ts'
import { startTestRedis, type TestRedis } from './test-redis.ts'

/** The suite that all stores share moves the times in Redis; here they pass by themselves. */
describe("the Redis session store by Redis' own clock", () => {
  let redis: TestRedis
  let store: SessionStore & RemovalQueue
  let under: StoreUnderTest

  beforeAll(async () => {
    redis = await startTestRedis()
  })

  afterAll(async () => {
    await redis?.close()
  })

  beforeEach(async () => {
    const connection = await redis.connect({ commandTimeoutMs: 5000 })
    store = createRedisSessionStore({ connection, tombstoneSeconds: 1 })
    under = {
      store,
      nowMs: () => redisNowMs(redis.raw),
      advance: () => Promise.reject(new Error('time passes by itself')),
    }
  })

  test('a session expires, and its tombstone goes', async () => {
    const { expiresAtMs } = await createActive(under, { ttlSeconds: 1 })
    await eventually(async () => (await store.get(owned)) === undefined)
    expect(await under.nowMs()).toBeGreaterThanOrEqual(expiresAtMs)

    await eventually(async () => (await store.begin({ ...aTurn('turn-2', 1) })).kind === 'unknown')
    expect(await store.counts()).toEqual({ removals: 1, sessions: 0 })
  })

  test('a turn holds a session of one second until it completes', async () => {
    const { expiresAtMs } = await createActive(under, { ttlSeconds: 1 })
    await store.begin(aTurn('turn-2', 60_000))
    await eventually(async () => (await under.nowMs()) > expiresAtMs)

    expect((await store.expireDue(10)).ended).toBe(0)
    expect(await store.complete(completed('turn-2'))).toMatchObject({ kind: 'completed', record: { turns: 2 } })
    expect(await store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'expired' })
  })

  test('two gateways on one Redis serve the same sessions', async () => {
    const [connection, sameKeys] = [await redis.connect(), await redis.connect()]
    const first = createRedisSessionStore({ connection })
    const second = createRedisSessionStore({ connection: { ...sameKeys, keyPrefix: connection.keyPrefix } })
    await first.create(newSession())

    expect(await second.complete(completed('turn-1'))).toMatchObject({ kind: 'completed' })
    expect(await first.begin(aTurn('turn-2'))).toMatchObject({ kind: 'active', record: { pod: '10.0.0.2:8000' } })
    expect(await second.remove(owned)).toBe(true)
    expect(await first.complete(completed('turn-2'))).toEqual({ kind: 'gone' })
  })

  test('a create that never ends is swept, and its retry key with it', async () => {
    const retryOf = { digest: 'digest-1', bodyDigest: 'body-1', rememberMs: 60_000, use: 'find-or-record' } as const
    await store.create(newSession({ leaseMs: 50, retryOf }))
    await eventually(async () => (await store.expireDue(10)).ended === 1)

    const again = newSession({ key: sessionKey('again'), retryOf: { ...retryOf, bodyDigest: 'body-2' } })
    expect(await store.create(again)).toMatchObject({ kind: 'created' })
  })

  test('a retry key is forgotten', async () => {
    const retryOf = { digest: 'digest-2', bodyDigest: 'body-1', rememberMs: 50, use: 'find-or-record' } as const
    await createActive(under, { retryOf })
    const again = newSession({ key: sessionKey('again'), retryOf: { ...retryOf, bodyDigest: 'body-2' } })

    await eventually(async () => (await store.create(again)).kind === 'created')
  })

  test('an announced artefact becomes due, and comes again when its claim runs out', async () => {
    await announceFor(under, 'artefact-1', { graceMs: 50 })
    const attempts: number[] = []
    await eventually(async () => {
      const claimed = await store.claim({ limit: 10, leaseMs: 50 })
      attempts.push(...claimed.map(({ attempt }) => attempt))
      return attempts.length === 3
    })

    expect(attempts).toEqual([1, 2, 3])
    expect(await store.commitKv({ key: session, kv: storedKv('artefact-1', 1) })).toBe(false)
  })
})
