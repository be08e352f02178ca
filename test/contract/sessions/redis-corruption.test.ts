import { beforeEach, describe, expect, test } from '@jest/globals'
import { RedisScriptError } from '../../../src/redis/redis-connection.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { redisUnderTest } from './age-redis-store.ts'
import {
  alice,
  artefactNames,
  callsOn,
  type StoreUnderTest,
  seconds,
  session,
  sessionKey,
  storedKv,
} from './store-under-test.ts'

describe('the Redis session store with damaged keys', () => {
  const redis = useTestRedis()
  let under: StoreUnderTest
  let prefix: string
  let corrupted: number
  const { abandon, advance, announce, begin, claimAll, complete, counts, create, createActive } = callsOn(() => under)
  const { drain, get, list, remove, setTtl, store, storeKv, sweep } = callsOn(() => under)

  const sessionText = (): string => `${prefix}s:${session.slice(0, 22)}`
  const sessionList = (): string => `${prefix}n:${alice.slice(0, 22)}`
  const emptyPage = { records: [], hasMore: false }

  /** Replaces one line of the session's record. */
  const spoilLine = async (number: number, line: string): Promise<void> => {
    const lines = ((await redis().raw.get(sessionText())) ?? '').split('\n')
    lines[number - 1] = line
    await redis().raw.set(sessionText(), lines.join('\n'))
  }

  beforeEach(async () => {
    corrupted = 0
    const onCorrupted = (): void => {
      corrupted += 1
    }
    const made = await redisUnderTest(redis(), { onCorrupted })
    under = made
    prefix = made.prefix
  })

  const damages: readonly { readonly name: string; readonly damage: () => Promise<unknown> }[] = [
    { name: 'is empty', damage: () => redis().raw.set(sessionText(), '') },
    { name: 'is binary', damage: () => redis().raw.set(sessionText(), Buffer.from([0, 255, 10, 128, 10, 1])) },
    { name: 'is cut off in the middle', damage: async () => redis().raw.setrange(sessionText(), 100, '\n\n\n') },
    { name: 'has a line too many', damage: () => redis().raw.append(sessionText(), '\nmore') },
    { name: 'has the layout of a later version', damage: () => spoilLine(1, 'a3') },
    { name: 'has an unknown state', damage: () => spoilLine(1, 'z2') },
    { name: 'expires at a time of 20 digits', damage: () => spoilLine(5, '9'.repeat(20)) },
    { name: 'has no TTL', damage: () => spoilLine(6, '') },
    {
      name: 'is a list',
      damage: async () => {
        await redis().raw.del(sessionText())
        await redis().raw.lpush(sessionText(), 'active')
      },
    },
  ]

  describe.each(damages)('a record that $name', ({ damage }) => {
    beforeEach(async () => {
      await createActive()
      await damage()
    })

    test.each([
      { name: 'begin', call: () => begin(), answer: { kind: 'unknown' } },
      { name: 'get', call: () => get(), answer: undefined },
      { name: 'remove', call: () => remove(), answer: false },
      { name: 'setTtl', call: () => setTtl(60), answer: undefined },
      { name: 'complete', call: () => complete('turn-1'), answer: { kind: 'gone' } },
    ])('is unknown to $name, which counts and deletes it, and queues its removal', async ({ call, answer }) => {
      expect(await call()).toEqual(answer)

      expect(corrupted).toBe(1)
      expect(await redis().raw.exists(sessionText())).toBe(0)
      expect(await counts()).toMatchObject({ sessions: 0 })
      expect(Object.keys(await claimAll())).toEqual([`s:${session}`])
      expect(await list()).toEqual(emptyPage)
      expect(corrupted).toBe(1)
    })

    test('is left out of the list, which counts and deletes it', async () => {
      expect(await list()).toEqual(emptyPage)

      expect(corrupted).toBe(1)
      expect(await counts()).toMatchObject({ sessions: 0 })
      expect(await redis().raw.exists(sessionList())).toBe(0)
    })

    test('does not stop the sweep', async () => {
      await redis().raw.zadd(`${prefix}deadlines`, 1, session.slice(0, 22))

      expect(await sweep()).toBe(1)
      expect(corrupted).toBe(1)
      expect(await counts()).toMatchObject({ sessions: 0 })
    })

    test('can be created again', async () => {
      expect(await create()).toMatchObject({ kind: 'created' })
      expect(await get()).toMatchObject({ turns: 0 })
    })
  })

  test.each(artefactNames)('the removal of a damaged record carries its own artefact, $name', async ({ named }) => {
    await createActive()
    await storeKv(named('artefact-1'))
    await spoilLine(1, 'a3')
    await begin()

    expect(await claimAll()).toEqual({ [`s:${session}`]: storedKv(named('artefact-1')).payload })
  })

  test.each([
    { name: 'of any name', artefact: 'foreign' },
    { name: 'named after its session', artefact: `${sessionKey('other').slice(0, 22)}foreign` },
  ])('the removal of a damaged record carries no artefact of another session, $name', async ({ artefact }) => {
    await createActive()
    await createActive({ key: sessionKey('other') })
    await storeKv(artefact, 1, { key: sessionKey('other') })
    await spoilLine(14, artefact)
    await spoilLine(15, '1 1100 123456789 payload')
    await spoilLine(1, 'a3')
    await begin()

    expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
  })

  test('an artefact named after its session has a key of its own only while its removal waits', async () => {
    const [, { named }] = artefactNames
    const keyOf = (artefact: string): string => `${prefix}a:${named(artefact)}`
    await createActive()
    await announce(named('artefact-1'))
    expect(await redis().raw.exists(keyOf('artefact-1'))).toBe(1)
    await storeKv(named('artefact-1'))
    expect(await redis().raw.exists(keyOf('artefact-1'))).toBe(0)
    await storeKv(named('artefact-2'), 2)

    expect(await redis().raw.exists(keyOf('artefact-1'), keyOf('artefact-2'))).toBe(1)
    expect(await get()).toMatchObject({ kv: storedKv(named('artefact-2'), 2) })
  })

  test('a session whose artefact lost its key has no stored KV, and stores again', async () => {
    await createActive()
    await storeKv('artefact-5', 5)
    await redis().raw.del(`${prefix}a:artefact-5`)

    expect(await get()).toMatchObject({ turns: 1, kv: undefined })
    expect(await storeKv('artefact-2', 2)).toBe(true)
    expect(await get()).toMatchObject({ kv: { artefactId: 'artefact-2' } })
  })

  test.each([
    { name: 'is gone', damage: async () => {} },
    { name: 'is a list', damage: () => redis().raw.lpush(`${prefix}a:artefact-1`, 'x') },
  ])('a removal whose payload $name is deleted and counted', async ({ damage }) => {
    await announce('artefact-1', { graceMs: 0 })
    await announce('artefact-2', { graceMs: 0 })
    await redis().raw.del(`${prefix}a:artefact-1`)
    await damage()

    expect(Object.keys(await claimAll())).toEqual(['a:artefact-2'])
    expect(corrupted).toBe(1)
    expect(await counts()).toEqual({ removals: 1, sessions: 0 })
  })

  test.each([
    { name: 'is a list', damage: (key: string) => redis().raw.lpush(key, 'x') },
    { name: 'is empty', damage: (key: string) => redis().raw.set(key, '') },
    { name: 'names a lost session', damage: (key: string) => redis().raw.set(key, `${session}\nbody-1`) },
  ])('a retry key that $name is overwritten', async ({ damage }) => {
    const retryOf = { digest: 'digest-1', bodyDigest: 'body-1', rememberMs: 60_000, use: 'find-or-record' } as const
    await damage(`${prefix}r:digest-1`)

    expect(await create({ retryOf })).toMatchObject({ kind: 'created' })
    expect(await create({ retryOf })).toMatchObject({ kind: 'existing' })
  })

  test('a session whose record was lost leaves the indexes', async () => {
    await createActive()
    await redis().raw.del(sessionText())
    await advance(seconds(3600))

    expect(await list()).toEqual(emptyPage)
    expect(await sweep()).toBe(1)
    expect(await counts()).toMatchObject({ sessions: 0 })
  })

  test("a tenant's list that names another tenant's session is empty", async () => {
    await createActive()
    await redis().raw.rename(sessionList(), `${prefix}n:mallory`)

    expect(await list('mallory' as typeof alice)).toEqual(emptyPage)
  })

  test('two session keys with the same first 22 characters are different sessions', async () => {
    await createActive()
    const key = `${session.slice(0, 22)}${'x'.repeat(21)}` as typeof session

    expect(await get({ key })).toBeUndefined()
    expect(await remove({ key })).toBe(false)
    expect(await get()).toMatchObject({ turns: 1 })
  })

  test('knownArtefacts deletes an artefact that no session names', async () => {
    await createActive()
    await storeKv('artefact-1')
    await redis().raw.del(sessionText())

    expect(await store().knownArtefacts(['artefact-1'])).toEqual(new Set())
    expect(await redis().raw.exists(`${prefix}a:artefact-1`)).toBe(0)
  })

  test('sessions that have ended leave no key', async () => {
    const retryOf = { digest: 'digest-1', bodyDigest: 'body-1', rememberMs: 60_000, use: 'record-only' } as const
    await createActive({ retryOf })
    await storeKv('artefact-1')
    await storeKv('artefact-2', 2)
    await storeKv(`${session.slice(0, 22)}artefact`, 3)
    await announce('artefact-3')
    await begin()
    await remove()
    await complete()
    await createActive({ key: sessionKey('expiring') })
    await storeKv('artefact-4', 1, { key: sessionKey('expiring') })
    await create({ key: sessionKey('failing'), retryOf })
    await abandon('turn-1', sessionKey('failing'))
    await advance(seconds(3600))
    await sweep()
    for (let round = 0; round < 3; round++) await drain()
    await advance(seconds(86_400))

    expect(await redis().raw.keys(`${prefix}*`)).toEqual([])
  })

  test('a damaged index is an error of its own, not an outage', async () => {
    await redis().raw.set(`${prefix}deadlines`, 'not a sorted set')

    await expect(create()).rejects.toBeInstanceOf(RedisScriptError)
    await expect(store().identity()).resolves.not.toBe('')
  })

  test('keys name session and tenant by their digests alone', async () => {
    await createActive({ retryOf: { digest: 'd', bodyDigest: 'b', rememberMs: 1000, use: 'record-only' } })
    const keys = await redis().raw.keys(`${prefix}*`)

    expect(keys.map((key) => key.slice(prefix.length)).sort()).toEqual([
      'deadlines',
      `n:${alice.slice(0, 22)}`,
      'r:d',
      `s:${session.slice(0, 22)}`,
    ])
  })
})
