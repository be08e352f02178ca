import { beforeEach, describe, expect, test } from '@jest/globals'
import { RedisScriptError } from '../../../src/redis/redis-connection.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { redisUnderTest } from './age-redis-store.ts'
import {
  alice,
  artefactOf,
  callsOn,
  mallory,
  payloadOf,
  retryDigest,
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

  const name = session.slice(0, 22)
  /** A key of the only partition, by its letter in `includes/arguments.lua`. */
  const keyOf = (letter: string): string => `${prefix}{0}:${letter}`
  const readText = async (): Promise<string> => (await redis().raw.hget(keyOf('s'), name)) ?? ''
  const writeText = (text: string | Buffer) => redis().raw.hset(keyOf('s'), name, text)
  const emptyPage = { records: [], hasMore: false }

  /** Replaces one line of the session's record. */
  const spoilLine = async (number: number, line: string): Promise<void> => {
    const lines = (await readText()).split('\n')
    lines[number - 1] = line
    await writeText(lines.join('\n'))
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
    { name: 'is empty', damage: () => writeText('') },
    { name: 'is binary', damage: () => writeText(Buffer.from([0, 255, 10, 128, 10, 1])) },
    { name: 'is cut off in the middle', damage: async () => writeText(`${(await readText()).slice(0, 100)}\n\n\n`) },
    { name: 'has a line too many', damage: async () => writeText(`${await readText()}\nmore`) },
    { name: 'has the layout of a later version', damage: () => spoilLine(1, 'a4') },
    { name: 'has an unknown state', damage: () => spoilLine(1, 'z3') },
    { name: 'expires at a time of 20 digits', damage: () => spoilLine(5, '9'.repeat(20)) },
    { name: 'has no TTL', damage: () => spoilLine(6, '') },
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
      expect(await readText()).toBe('')
      expect(await counts()).toMatchObject({ sessions: 0 })
      expect(Object.keys(await claimAll())).toEqual([`s:${session}`])
      expect(await list()).toEqual(emptyPage)
      expect(corrupted).toBe(1)
    })

    test('is left out of the list, which counts and deletes it', async () => {
      expect(await list()).toEqual(emptyPage)

      expect(corrupted).toBe(1)
      expect(await counts()).toMatchObject({ sessions: 0 })
      expect(await redis().raw.exists(keyOf('n'))).toBe(0)
    })

    test('does not stop the sweep', async () => {
      await redis().raw.zadd(keyOf('d'), 1, name)

      expect(await sweep()).toBe(1)
      expect(corrupted).toBe(1)
      expect(await counts()).toMatchObject({ sessions: 0 })
    })

    test('can be created again', async () => {
      expect(await create()).toMatchObject({ kind: 'created' })
      expect(await get()).toMatchObject({ turns: 0 })
    })
  })

  test('the removal of a damaged record carries its own artefact', async () => {
    await createActive()
    await storeKv('artefact-1')
    await spoilLine(1, 'a4')
    await begin()

    expect(await claimAll()).toEqual({ [`s:${session}`]: payloadOf('artefact-1') })
  })

  test('the removal of a damaged record carries no artefact of another session', async () => {
    await createActive()
    await createActive({ key: sessionKey('other') })
    await storeKv('foreign', 1, { key: sessionKey('other') })
    await spoilLine(14, artefactOf('foreign', sessionKey('other')))
    await spoilLine(15, '1 1100 123456789 payload')
    await spoilLine(1, 'a4')
    await begin()

    expect(await claimAll()).toEqual({ [`s:${session}`]: undefined })
  })

  /** Too long for the session's text. */
  const longPayload = 'x'.repeat(1000)

  test('shared KV stays while a fork holds it, when the record of the session that stored it is damaged', async () => {
    const fork = sessionKey('f-session')
    await createActive()
    await storeKv('artefact-1')
    await store().fork({
      from: { key: session, tenant: alice },
      session: { key: fork, sealedId: 'sealed', ttlSeconds: 60 },
    })
    await spoilLine(1, 'a4')

    expect(await get()).toBeUndefined()
    expect(Object.keys(await claimAll())).toEqual([`s:${session}`])
    expect(await get({ key: fork })).toMatchObject({ kv: storedKv('artefact-1') })
    await remove({ key: fork })
    expect(Object.keys(await claimAll()).sort()).toEqual(['a:artefact-1', `s:${fork}`])
  })

  test('an artefact has a record beside its session only while its removal waits', async () => {
    const records = () => redis().raw.hkeys(keyOf('a'))
    await createActive()
    await announce('artefact-1')
    expect(await records()).toEqual([artefactOf('artefact-1')])
    await storeKv('artefact-1')
    expect(await records()).toEqual([])
    await storeKv('artefact-2', 2)

    expect(await records()).toEqual([artefactOf('artefact-1')])
    expect(await get()).toMatchObject({ kv: storedKv('artefact-2', 2) })
  })

  test('a session whose artefact lost its record has no stored KV, and stores again', async () => {
    await createActive()
    await storeKv('artefact-5', 5, { payload: longPayload })
    await redis().raw.del(keyOf('a'))

    expect(await get()).toMatchObject({ turns: 1, kv: undefined })
    expect(await storeKv('artefact-2', 2)).toBe(true)
    expect(await get()).toMatchObject({ kv: storedKv('artefact-2', 2) })
  })

  test.each([
    { name: 'is gone', damage: () => redis().raw.hdel(keyOf('a'), artefactOf('artefact-1')) },
    { name: 'is of another form', damage: () => redis().raw.hset(keyOf('a'), artefactOf('artefact-1'), 'x') },
  ])('a removal whose payload $name is deleted and counted', async ({ damage }) => {
    await announce('artefact-1', { graceMs: 0 })
    await announce('artefact-2', { graceMs: 0 })
    await damage()

    expect(Object.keys(await claimAll())).toEqual(['a:artefact-2'])
    expect(corrupted).toBe(1)
    expect(await counts()).toEqual({ removals: 1, sessions: 0 })
  })

  test.each([
    { name: 'is empty', text: '' },
    { name: 'names a lost session', text: `${session}\nbody-1\n999999999999999` },
  ])('a retry key that $name is overwritten', async ({ text }) => {
    const retryOf = { digest: retryDigest, bodyDigest: 'body-1', rememberMs: 60_000, use: 'find-or-record' } as const
    await store().identity()
    await redis().raw.hset(keyOf('r'), retryDigest, text)

    expect(await create({ retryOf })).toMatchObject({ kind: 'created' })
    expect(await create({ retryOf })).toMatchObject({ kind: 'existing' })
  })

  test('a session whose record was lost leaves the indexes', async () => {
    await createActive()
    await redis().raw.del(keyOf('s'))
    await advance(seconds(3600))

    expect(await list()).toEqual(emptyPage)
    expect(await sweep()).toBe(1)
    expect(await counts()).toMatchObject({ sessions: 0 })
  })

  test("a tenant's list that names another tenant's session is empty", async () => {
    await createActive()
    const [member = ''] = await redis().raw.zrange(keyOf('n'), '0', '0')
    await redis().raw.zadd(keyOf('n'), 0, member.replace(alice.slice(0, 22), mallory.slice(0, 22)))

    expect(await list(mallory)).toEqual(emptyPage)
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
    await storeKv('artefact-1', 1, { payload: longPayload })
    await redis().raw.del(keyOf('s'))

    expect(await store().knownArtefacts([artefactOf('artefact-1')])).toEqual(new Set())
    expect(await redis().raw.exists(keyOf('a'))).toBe(0)
  })

  test('sessions that have ended leave no key', async () => {
    const retryOf = { digest: retryDigest, bodyDigest: 'body-1', rememberMs: 60_000, use: 'record-only' } as const
    await createActive({ retryOf })
    await storeKv('artefact-1')
    await storeKv('artefact-2', 2)
    await storeKv('artefact-5', 3, { payload: longPayload })
    await announce('artefact-3')
    await begin()
    await remove()
    await complete()
    await createActive({ key: sessionKey('expiring') })
    await storeKv('artefact-4', 1, { key: sessionKey('expiring') })
    await create({ key: sessionKey('failing-session'), retryOf })
    await abandon('turn-1', sessionKey('failing-session'))
    await advance(seconds(3600))
    await sweep()
    for (let round = 0; round < 3; round++) await drain()
    await advance(seconds(86_400))
    await sweep(100)
    await advance(seconds(10))

    expect(await redis().raw.keys(`${prefix}*`)).toEqual([`${prefix}store`])
  })

  test('a damaged index is an error of its own, not an outage', async () => {
    await redis().raw.set(keyOf('d'), 'not a sorted set')

    await expect(create()).rejects.toBeInstanceOf(RedisScriptError)
    await expect(store().identity()).resolves.not.toBe('')
  })

  test('keys name session and tenant by their digests alone', async () => {
    await createActive({ retryOf: { digest: retryDigest, bodyDigest: 'b', rememberMs: 1000, use: 'record-only' } })
    const members = [...(await redis().raw.hkeys(keyOf('s'))), ...(await redis().raw.zrange(keyOf('n'), '0', '0'))]

    expect(members).toEqual([name, expect.stringMatching(new RegExp(`^${alice.slice(0, 22)}\\d{13}${name}$`))])
    expect(await redis().raw.hkeys(keyOf('r'))).toEqual([retryDigest])
  })
})
