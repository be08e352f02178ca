import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startRedis } from '../../../playground/start-redis.ts'
import type { RedisConnectionOptions } from '../../../src/redis/create-redis-connection.ts'
import type { RedisBreakerState } from '../../../src/redis/redis-breaker.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import { documentedRights } from '../../support/documented-rights.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { alice, artefactOf, callsOn, type StoreUnderTest, session, sessionKey } from './store-under-test.ts'

/** Longer than the time limit of a test. */
const neverMs = 600_000

const succeeds = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => true,
    () => false,
  )

/** Whether a promise settles within one round of the event loop, so without waiting for the network. */
const settlesAtOnce = async (promise: Promise<unknown>): Promise<boolean> => {
  const settled = succeeds(promise).then(() => true)
  return await Promise.race([settled, new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])
}

describe('the Redis session store', () => {
  let redis: TestRedis
  let under: StoreUnderTest
  let states: RedisBreakerState[]
  let faults: Error[]
  const { abandon, announce, begin, claim, claimOne, commit, complete, counts } = callsOn(() => under)
  const { create, createActive, get, list, setKvStatus, remove, setTtl, store, storeKv, sweep } = callsOn(() => under)

  const open = async (options: Partial<RedisConnectionOptions> = {}): Promise<void> => {
    const connection = await redis.connect({
      onBreaker: (state) => states.push(state),
      onFault: (error) => faults.push(error),
      ...options,
    })
    under = {
      store: createRedisSessionStore({ connection }),
      nowMs: () => Promise.reject(new Error('not needed')),
      advance: () => Promise.reject(new Error('not needed')),
    }
  }

  const answers = (): Promise<boolean> => succeeds(counts())

  const startAgain = async (): Promise<TestRedis['server']> => {
    await redis.server.child.kill()
    return await startRedis({ dir: redis.dir, port: redis.server.port })
  }

  beforeEach(async () => {
    states = []
    faults = []
    redis = await startTestRedis()
  })

  afterEach(async () => {
    await redis?.close()
  })

  const removal = { id: `a:${artefactOf('artefact-1')}`, session, claim: 'claim' }
  const calls: readonly (() => Promise<unknown>)[] = [
    () => create(),
    () => begin(),
    () => complete(),
    () => abandon(),
    () => commit('artefact-1'),
    () => setKvStatus('too_short'),
    () => store().dropArtefacts({ artefactIds: [artefactOf('artefact-1')], reason: 'damaged' }),
    () => get(),
    () => list(),
    () => setTtl(60),
    () => remove(),
    () => announce('artefact-1'),
    () => sweep(),
    () => claim(),
    () => store().ack([removal]),
    () => store().retryLater(removal, 1000),
    () => store().knownArtefacts([artefactOf('artefact-1')]),
    () => counts(),
  ]

  test('fails every call at once when Redis was killed', async () => {
    await open({ commandTimeoutMs: neverMs })
    await createActive()
    await redis.server.child.kill()
    await expect(get()).rejects.toBeInstanceOf(StoreUnavailableError)

    for (const call of calls) await expect(call()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await settlesAtOnce(begin())).toBe(true)
  })

  test('fails commands on their way when Redis dies, and does not send them again', async () => {
    await open({ commandTimeoutMs: neverMs })
    redis.server.child.pause()
    const pending = create()
    await redis.server.child.kill()
    await expect(pending).rejects.toBeInstanceOf(StoreUnavailableError)
    const again = await startAgain()
    await eventually(answers)

    expect(await get()).toBeUndefined()
    await again.child.kill()
  })

  test('uses a Redis that starts after the gateway', async () => {
    await redis.server.child.kill()
    await open({ commandTimeoutMs: neverMs })
    await expect(create()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(faults.length).toBeGreaterThan(0)

    const again = await startAgain()
    await eventually(answers)
    expect(await create()).toMatchObject({ kind: 'created' })
    await again.child.kill()
  })

  test('fails calls to a frozen Redis at their time limit, later ones at once, and recovers with it', async () => {
    const keyPrefix = 'frozen:'
    await open({ keyPrefix })
    await createActive()
    await open({ keyPrefix, commandTimeoutMs: 500 })
    redis.server.child.pause()
    const outcomes: boolean[] = []
    for (let call = 0; call < 5; call++) {
      const turn = begin()
      outcomes.push(await settlesAtOnce(turn))
      await expect(turn).rejects.toBeInstanceOf(StoreUnavailableError)
    }
    expect(outcomes).toEqual([false, false, false, false, false])
    expect(states).toEqual(['open'])

    expect(await settlesAtOnce(begin())).toBe(true)
    await expect(begin()).rejects.toBeInstanceOf(StoreUnavailableError)
    redis.server.child.resume()
    await eventually(answers)
    expect(states.at(-1)).toBe('closed')
    expect(await begin('turn-3')).toMatchObject({ kind: 'active' })
  })

  describe('on a full Redis', () => {
    beforeEach(async () => {
      await open()
      await createActive()
      await storeKv('artefact-1')
      await begin()
      await redis.raw.config('SET', 'maxmemory', '1')
    })

    test.each([
      { name: 'create', call: () => create({ key: sessionKey('other') }) },
      { name: 'begin', call: () => begin('turn-3') },
      { name: 'announce', call: () => announce('artefact-2') },
      { name: 'setTtl', call: () => setTtl(60) },
    ])('refuses $name until there is room', async ({ call }) => {
      await expect(call()).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(states).toEqual([])
      await redis.raw.config('SET', 'maxmemory', '0')
      await expect(call()).resolves.not.toBe(null)
    })

    test('sessions, counts, artefacts and the name of its data are read', async () => {
      expect(await store().identity()).toMatch(/./)
      expect(await get()).toMatchObject({ turns: 1 })
      expect(await list()).toMatchObject({ hasMore: false })
      expect(await counts()).toEqual({ removals: 0, sessions: 1 })
      expect(await store().knownArtefacts([artefactOf('artefact-1')])).toEqual(new Set([artefactOf('artefact-1')]))
    })

    test.each([
      { name: 'completes', call: () => complete(), kind: { kind: 'completed' } },
      { name: 'abandons', call: () => abandon(), kind: undefined },
    ])('$name a turn', async ({ call, kind }) => {
      expect(await call()).toEqual(kind === undefined ? undefined : expect.objectContaining(kind))
      await redis.raw.config('SET', 'maxmemory', '0')
      expect(await get()).toMatchObject({ turns: kind === undefined ? 1 : 2 })
    })

    test('deletes, and returns the removal', async () => {
      expect(await remove()).toBe(true)
      const removal = await claimOne()
      expect(removal).toMatchObject({ id: `s:${session}`, payload: '{"file":"artefact-1"}' })
      await store().ack([removal])
      expect(await counts()).toEqual({ removals: 0, sessions: 0 })
    })
  })

  test('refuses turns while Redis is a replica, and begins them when it is the master again', async () => {
    await open()
    await createActive()
    await redis.raw.replicaof('127.0.0.1', '1')
    await expect(begin()).rejects.toBeInstanceOf(StoreUnavailableError)
    await redis.raw.replicaof('NO', 'ONE')

    await eventually(() => succeeds(begin()))
    expect(await begin()).toMatchObject({ kind: 'active' })
  })

  test('needs no more rights than docs/redis.md names', async () => {
    await redis.raw.acl('SETUSER', 'gateway', ...documentedRights('own:'))
    const url = `${redis.server.url.replace('//', '//gateway:password@')}/1`
    await open({ url, keyPrefix: 'own:' })
    await createActive()
    await storeKv('artefact-1')
    await storeKv('artefact-2', 2)
    await store().list({ tenant: alice, limit: 10, after: session })
    await setTtl(60)
    await begin()
    await abandon()
    await store().dropArtefacts({ artefactIds: [artefactOf('artefact-2')], reason: 'damaged' })
    await remove()
    await sweep()
    await store().knownArtefacts([artefactOf('artefact-1'), artefactOf('unknown')])
    for (const removal of await claim()) {
      await store().retryLater(removal, 0)
      await store().ack([removal])
    }

    expect(await counts()).toEqual({ removals: 1, sessions: 0 })
    await open({ url, keyPrefix: 'foreign:' })
    await expect(create()).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  test('writes no password, URL or stored text into errors', async () => {
    await redis.raw.config('SET', 'requirepass', 'right-password')
    await open({ url: redis.server.url.replace('//', '//:wrong-password@') })
    const refused = await create({ sealedId: 'sealed-marker' }).catch((error: unknown) => error)
    await eventually(async () => faults.length > 0)
    const text = inspect([refused, faults], { depth: 20 })

    expect(refused).toBeInstanceOf(StoreUnavailableError)
    expect(text).toContain('WRONGPASS')
    expect(text).not.toMatch(/wrong-password|right-password|redis:\/\/|sealed-marker/)
  })
})
