import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { RedisScriptError } from '../../../src/redis/redis-connection.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import type { SessionStore } from '../../../src/sessions/session-store.ts'
import { ageRedisStore, redisNowMs } from './age-redis-store.ts'
import {
  alice,
  announceFor,
  artefactNames,
  aTurn,
  claimAll,
  completed,
  createActive,
  newSession,
  owned,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
  storedKv,
  storeKv,
} from './store-under-test.ts'
import { startTestRedis, type TestRedis } from './test-redis.ts'

describe('what others did to the keys of the Redis session store', () => {
  let redis: TestRedis
  let under: StoreUnderTest
  let store: SessionStore & RemovalQueue
  let prefix: string
  let corrupted: number

  const sessionText = (): string => `${prefix}s:${session.slice(0, 22)}`
  const sessionList = (): string => `${prefix}n:${alice.slice(0, 22)}`

  /** Puts another text in place of one line of the session's record. */
  const spoilLine = async (number: number, line: string): Promise<void> => {
    const lines = ((await redis.raw.get(sessionText())) ?? '').split('\n')
    lines[number - 1] = line
    await redis.raw.set(sessionText(), lines.join('\n'))
  }

  beforeAll(async () => {
    redis = await startTestRedis()
  })

  afterAll(async () => {
    await redis?.close()
  })

  beforeEach(async () => {
    const connection = await redis.connect({ commandTimeoutMs: 5000 })
    prefix = connection.keyPrefix
    corrupted = 0
    store = createRedisSessionStore({
      connection,
      onCorrupted: () => {
        corrupted += 1
      },
    })
    under = {
      store,
      nowMs: () => redisNowMs(redis.raw),
      advance: (milliseconds) => ageRedisStore(redis.raw, prefix, milliseconds),
    }
  })

  const damages: readonly { readonly name: string; readonly damage: () => Promise<unknown> }[] = [
    { name: 'is empty', damage: () => redis.raw.set(sessionText(), '') },
    { name: 'is binary', damage: () => redis.raw.set(sessionText(), Buffer.from([0, 255, 10, 128, 10, 1])) },
    { name: 'is half there', damage: async () => redis.raw.setrange(sessionText(), 100, '\n\n\n') },
    { name: 'is longer', damage: () => redis.raw.append(sessionText(), '\nmore') },
    { name: 'has the layout of a later version', damage: () => spoilLine(1, 'a3') },
    { name: 'has an unknown state', damage: () => spoilLine(1, 'z2') },
    { name: 'was created at no time', damage: () => spoilLine(4, 'yesterday') },
    { name: 'expires at a negative time', damage: () => spoilLine(5, '-1') },
    { name: 'expires at a time of 20 digits', damage: () => spoilLine(5, '9'.repeat(20)) },
    { name: 'has half a turn', damage: () => spoilLine(7, '1.5') },
    { name: 'has no TTL', damage: () => spoilLine(6, '') },
    {
      name: 'is a hash',
      damage: async () => {
        await redis.raw.del(sessionText())
        await redis.raw.hset(sessionText(), 'state', 'active')
      },
    },
    {
      name: 'is a list',
      damage: async () => {
        await redis.raw.del(sessionText())
        await redis.raw.lpush(sessionText(), 'active')
      },
    },
  ]

  describe.each(damages)('a record that $name', ({ damage }) => {
    beforeEach(async () => {
      await createActive(under)
      await damage()
    })

    test.each([
      { name: 'a turn', come: async () => expect(await store.begin(aTurn('turn-2'))).toEqual({ kind: 'unknown' }) },
      { name: 'a look', come: async () => expect(await store.get(owned)).toBeUndefined() },
      { name: 'a delete', come: async () => expect(await store.remove(owned)).toBe(false) },
      {
        name: 'a new TTL',
        come: async () => expect(await store.setTtl({ ...owned, ttlSeconds: 60 })).toBeUndefined(),
      },
      {
        name: 'the end of a turn',
        come: async () => expect(await store.complete(completed('turn-1'))).toEqual({ kind: 'gone' }),
      },
    ])('is unknown to $name, counted, dropped, and its removal queued', async ({ come }) => {
      await come()

      expect(corrupted).toBe(1)
      expect(await redis.raw.exists(sessionText())).toBe(0)
      expect(await store.counts()).toMatchObject({ sessions: 0 })
      expect(Object.keys(await claimAll(under))).toEqual([`s:${session}`])
      expect(await store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({ records: [], hasMore: false })
      expect(corrupted).toBe(1)
    })

    test('is left out of the list and dropped', async () => {
      expect(await store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({ records: [], hasMore: false })

      expect(corrupted).toBe(1)
      expect(await store.counts()).toMatchObject({ sessions: 0 })
      expect(await redis.raw.exists(sessionList())).toBe(0)
    })

    test('does not stop the sweep', async () => {
      await redis.raw.zadd(`${prefix}deadlines`, 1, session.slice(0, 22))

      expect((await store.expireDue(10)).ended).toBe(1)
      expect(corrupted).toBe(1)
      expect(await store.counts()).toMatchObject({ sessions: 0 })
    })

    test('can be created anew', async () => {
      expect(await store.create(newSession())).toMatchObject({ kind: 'created' })
      expect(await store.get(owned)).toMatchObject({ turns: 0 })
    })
  })

  test.each(artefactNames)(
    'the removal of an unreadable record carries the artefact that is its own, $name',
    async ({ named }) => {
      await createActive(under)
      await storeKv(under, named('artefact-1'), 1)
      await spoilLine(1, 'a3')
      await store.begin(aTurn('turn-2'))

      expect(await claimAll(under)).toEqual({ [`s:${session}`]: storedKv(named('artefact-1'), 1).payload })
    },
  )

  test.each([
    { name: 'of any name', artefact: 'foreign' },
    { name: 'named after its session', artefact: `${sessionKey('other').slice(0, 22)}foreign` },
  ])('the removal of an unreadable record carries no artefact of another session, $name', async ({ artefact }) => {
    await createActive(under)
    await createActive(under, { key: sessionKey('other') })
    await storeKv(under, artefact, 1, sessionKey('other'))
    await spoilLine(14, artefact)
    await spoilLine(15, '1 1100 123456789 payload')
    await spoilLine(1, 'a3')
    await store.begin(aTurn('turn-2'))

    expect(await claimAll(under)).toEqual({ [`s:${session}`]: undefined })
  })

  test('an artefact named after its session takes a key of its own only while its removal waits', async () => {
    const [, { named }] = artefactNames
    const keyOf = (artefact: string): string => `${prefix}a:${named(artefact)}`
    await createActive(under)
    await announceFor(under, named('artefact-1'))
    expect(await redis.raw.exists(keyOf('artefact-1'))).toBe(1)
    await storeKv(under, named('artefact-1'), 1)
    expect(await redis.raw.exists(keyOf('artefact-1'))).toBe(0)
    await storeKv(under, named('artefact-2'), 2)

    expect(await redis.raw.exists(keyOf('artefact-1'), keyOf('artefact-2'))).toBe(1)
    expect(await store.get(owned)).toMatchObject({ kv: storedKv(named('artefact-2'), 2) })
  })

  test('a session whose artefact lost its payload has no stored KV, and takes a new one', async () => {
    await createActive(under)
    await storeKv(under, 'artefact-5', 5)
    await redis.raw.del(`${prefix}a:artefact-5`)

    expect(await store.get(owned)).toMatchObject({ turns: 1, kv: undefined })
    expect(await storeKv(under, 'artefact-2', 2)).toBe(true)
    expect(await store.get(owned)).toMatchObject({ kv: { artefactId: 'artefact-2' } })
  })

  test.each([
    { name: 'gone', damage: async () => redis.raw.del(`${prefix}a:artefact-1`) },
    {
      name: 'a list',
      damage: async () => {
        await redis.raw.del(`${prefix}a:artefact-1`)
        await redis.raw.lpush(`${prefix}a:artefact-1`, 'x')
      },
    },
  ])('a removal whose payload is $name is struck off and counted', async ({ damage }) => {
    await announceFor(under, 'artefact-1', { graceMs: 0 })
    await announceFor(under, 'artefact-2', { graceMs: 0 })
    await damage()

    expect(Object.keys(await claimAll(under))).toEqual(['a:artefact-2'])
    expect(corrupted).toBe(1)
    expect(await store.counts()).toEqual({ removals: 1, sessions: 0 })
  })

  test.each([
    { name: 'is a list', damage: (key: string) => redis.raw.lpush(key, 'x') },
    { name: 'names nothing', damage: (key: string) => redis.raw.set(key, '') },
    { name: 'names a session that is lost', damage: (key: string) => redis.raw.set(key, `${session}\nbody-1`) },
  ])('a retry key that $name is written anew', async ({ damage }) => {
    const retryOf = { digest: 'digest-1', bodyDigest: 'body-1', rememberMs: 60_000, use: 'find-or-record' } as const
    await damage(`${prefix}r:digest-1`)

    expect(await store.create(newSession({ retryOf }))).toMatchObject({ kind: 'created' })
    expect(await store.create(newSession({ retryOf }))).toMatchObject({ kind: 'existing' })
  })

  test('a session whose record was lost leaves the indexes', async () => {
    await createActive(under)
    await redis.raw.del(sessionText())
    await under.advance(seconds(3600))

    expect(await store.list({ tenant: alice, limit: 10, after: undefined })).toEqual({ records: [], hasMore: false })
    expect((await store.expireDue(10)).ended).toBe(1)
    expect(await store.counts()).toMatchObject({ sessions: 0 })
  })

  test("a tenant's list that names another's session shows nothing of it", async () => {
    await createActive(under)
    await redis.raw.rename(sessionList(), `${prefix}n:mallory`)

    const mallory = 'mallory' as typeof alice
    expect(await store.list({ tenant: mallory, limit: 10, after: undefined })).toEqual({ records: [], hasMore: false })
  })

  test('two keys with one beginning are told apart', async () => {
    await createActive(under)
    const other = { key: `${session.slice(0, 22)}${'x'.repeat(21)}` as typeof session, tenant: alice }

    expect(await store.get(other)).toBeUndefined()
    expect(await store.remove(other)).toBe(false)
    expect(await store.get(owned)).toMatchObject({ turns: 1 })
  })

  test('an artefact that nothing names any more is forgotten when it is asked for', async () => {
    await createActive(under)
    await storeKv(under, 'artefact-1', 1)
    await redis.raw.del(sessionText())

    expect(await store.knownArtefacts(['artefact-1'])).toEqual(new Set())
    expect(await redis.raw.exists(`${prefix}a:artefact-1`)).toBe(0)
  })

  test('sessions that have ended leave nothing behind', async () => {
    const retryOf = { digest: 'digest-1', bodyDigest: 'body-1', rememberMs: 60_000, use: 'record-only' } as const
    await createActive(under, { retryOf })
    await storeKv(under, 'artefact-1', 1)
    await storeKv(under, 'artefact-2', 2)
    await storeKv(under, `${session.slice(0, 22)}artefact`, 3)
    await announceFor(under, 'artefact-3')
    await store.begin(aTurn('turn-2'))
    await store.remove(owned)
    await store.complete(completed('turn-2'))
    await createActive(under, { key: sessionKey('expiring') })
    await storeKv(under, 'artefact-4', 1, sessionKey('expiring'))
    await store.create(newSession({ key: sessionKey('failing'), retryOf }))
    await store.abandon({ key: sessionKey('failing'), turnId: 'turn-1' })
    await under.advance(seconds(3600))
    await store.expireDue(10)
    for (let round = 0; round < 3; round++) {
      for (const removal of await store.claim({ limit: 10, leaseMs: 1000 })) await store.ack([removal])
    }
    await under.advance(seconds(86_400))

    expect(await redis.raw.keys(`${prefix}*`)).toEqual([])
  })

  test.each([
    { name: 'of turns', separator: '\u001e' },
    { name: 'of a text and a value', separator: '\u001f' },
  ])('a separator $name in a text mixes up no turns that are asked for together', async ({ separator }) => {
    const neighbour = { key: sessionKey('neighbour'), tenant: alice, turnId: 'turn-2', leaseMs: 60_000 }
    await createActive(under)
    const own = await createActive(under, { key: neighbour.key, model: 'qwen3' })
    await spoilLine(12, `llama${separator}${(await redis.raw.get(sessionText())) ?? ''}`.replaceAll('\n', ' '))

    const [, begun] = await Promise.allSettled([store.begin(aTurn('turn-2')), store.begin(neighbour)])

    expect(begun).toEqual({ status: 'fulfilled', value: { kind: 'active', record: own, nowMs: expect.any(Number) } })
  })

  test('a spoilt index is a fault of its own, and does not pass for an outage', async () => {
    await redis.raw.set(`${prefix}deadlines`, 'not a sorted set')

    await expect(store.create(newSession())).rejects.toBeInstanceOf(RedisScriptError)
    await expect(store.ping()).resolves.toBeUndefined()
  })

  test('nothing is written in the clear that names a session or its tenant beyond the digests given', async () => {
    await createActive(under, { retryOf: { digest: 'd', bodyDigest: 'b', rememberMs: 1000, use: 'record-only' } })
    const keys = await redis.raw.keys(`${prefix}*`)

    expect(keys.map((key) => key.slice(prefix.length)).sort()).toEqual([
      'deadlines',
      `n:${alice.slice(0, 22)}`,
      'r:d',
      `s:${session.slice(0, 22)}`,
    ])
  })
})
