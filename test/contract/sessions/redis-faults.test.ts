import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startRedis } from '../../../playground/start-redis.ts'
import type { RedisConnectionOptions } from '../../../src/redis/create-redis-connection.ts'
import type { RedisBreakerState } from '../../../src/redis/redis-breaker.ts'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import type { RemovalQueue } from '../../../src/sessions/removal-queue.ts'
import { type SessionStore, StoreUnavailableError } from '../../../src/sessions/session-store.ts'
import {
  alice,
  announceFor,
  aTurn,
  claimOne,
  completed,
  createActive,
  newSession,
  owned,
  type StoreUnderTest,
  session,
  sessionKey,
  storedKv,
  storeKv,
} from './store-under-test.ts'
import { startTestRedis, type TestRedis } from './test-redis.ts'
import { until } from './until.ts'

/** Long enough that a test which waits for it fails. */
const neverMs = 600_000

/** Whether a promise settles before the event loop has come round, so without waiting for anything from outside. */
const settlesAtOnce = async (promise: Promise<unknown>): Promise<boolean> => {
  const settled = promise.then(
    () => true,
    () => true,
  )
  return await Promise.race([settled, new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])
}

describe('a Redis in trouble', () => {
  let redis: TestRedis
  let store: SessionStore & RemovalQueue
  let under: StoreUnderTest
  let states: RedisBreakerState[]
  let faults: Error[]

  const open = async (options: Partial<RedisConnectionOptions> = {}): Promise<void> => {
    const connection = await redis.connect({
      onBreaker: (state) => states.push(state),
      onFault: (error) => faults.push(error),
      ...options,
    })
    store = createRedisSessionStore({ connection })
    under = {
      store,
      nowMs: () => Promise.reject(new Error('not needed')),
      advance: () => Promise.reject(new Error('not needed')),
    }
  }

  const answers = async (): Promise<boolean> => {
    try {
      await store.ping()
      return true
    } catch {
      return false
    }
  }

  const startAgain = async (): Promise<TestRedis['server']> => {
    await redis.server.child.kill()
    return await startRedis({ tool: redis.tool, dir: redis.dir, port: redis.server.port })
  }

  beforeEach(async () => {
    states = []
    faults = []
    redis = await startTestRedis()
  })

  afterEach(async () => {
    await redis?.close()
  })

  const calls: readonly { readonly name: string; readonly call: () => Promise<unknown> }[] = [
    { name: 'create', call: () => store.create(newSession()) },
    { name: 'begin', call: () => store.begin(aTurn('turn-2')) },
    { name: 'complete', call: () => store.complete(completed('turn-2')) },
    { name: 'abandon', call: () => store.abandon({ key: session, turnId: 'turn-2' }) },
    { name: 'commitKv', call: () => store.commitKv({ key: session, kv: storedKv('artefact-1', 1) }) },
    { name: 'setKvStatus', call: () => store.setKvStatus({ key: session, status: 'too_short' }) },
    { name: 'dropKv', call: () => store.dropKv({ key: session, artefactId: 'artefact-1', reason: 'damaged' }) },
    { name: 'get', call: () => store.get(owned) },
    { name: 'list', call: () => store.list({ tenant: alice, limit: 10, after: undefined }) },
    { name: 'setTtl', call: () => store.setTtl({ ...owned, ttlSeconds: 60 }) },
    { name: 'remove', call: () => store.remove(owned) },
    { name: 'ping', call: () => store.ping() },
    { name: 'announce', call: () => announceFor(under, 'artefact-1') },
    { name: 'expireDue', call: () => store.expireDue(10) },
    { name: 'claim', call: () => store.claim({ limit: 10, leaseMs: 1000 }) },
    { name: 'ack', call: () => store.ack([{ id: 'a:artefact-1', claim: 'claim' }]) },
    { name: 'retryLater', call: () => store.retryLater({ id: 'a:artefact-1', claim: 'claim' }, 1000) },
    { name: 'knownArtefacts', call: () => store.knownArtefacts(['artefact-1']) },
    { name: 'counts', call: () => store.counts() },
  ]

  test('that was killed: every call fails at once, without its time limit', async () => {
    await open({ commandTimeoutMs: neverMs })
    await createActive(under)
    await redis.server.child.kill()
    await expect(store.get(owned)).rejects.toBeInstanceOf(StoreUnavailableError)

    for (const { call } of calls) await expect(call()).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await settlesAtOnce(store.begin(aTurn('turn-2')))).toBe(true)
  })

  test('that dies with commands on their way: they fail with it, and are not sent again', async () => {
    await open({ commandTimeoutMs: neverMs })
    redis.server.child.pause()
    const pending = store.create(newSession())
    await redis.server.child.kill()
    await expect(pending).rejects.toBeInstanceOf(StoreUnavailableError)
    const again = await startAgain()
    await until(answers)

    expect(await store.get(owned)).toBeUndefined()
    await again.child.kill()
  })

  test('that comes back empty: sessions are unknown, and the scripts are sent anew', async () => {
    await open({ commandTimeoutMs: 2000 })
    await createActive(under)
    const again = await startAgain()
    await until(answers)

    expect(await store.begin(aTurn('turn-2'))).toEqual({ kind: 'unknown' })
    expect(await store.create(newSession())).toMatchObject({ kind: 'created' })
    await again.child.kill()
  })

  test('that was not there at the start is used once it is', async () => {
    await redis.server.child.kill()
    await open({ commandTimeoutMs: neverMs })
    await expect(store.create(newSession())).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(faults.length).toBeGreaterThan(0)

    const again = await startAgain()
    await until(answers)
    expect(await store.create(newSession())).toMatchObject({ kind: 'created' })
    await again.child.kill()
  })

  test('that lost its scripts gets them again', async () => {
    await open({ commandTimeoutMs: 2000 })
    await createActive(under)
    await redis.raw.script('FLUSH')

    expect(await store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'active' })
  })

  test('that is frozen: calls end by their time limit, then fail at once, and it is found again when it goes on', async () => {
    await open({ commandTimeoutMs: 100 })
    await createActive(under)
    redis.server.child.pause()
    const outcomes: boolean[] = []
    for (let call = 0; call < 5; call++) {
      const turn = store.begin(aTurn('turn-2'))
      outcomes.push(await settlesAtOnce(turn))
      await expect(turn).rejects.toBeInstanceOf(StoreUnavailableError)
    }
    expect(outcomes).toEqual([false, false, false, false, false])
    expect(states).toEqual(['open'])

    expect(await settlesAtOnce(store.begin(aTurn('turn-2')))).toBe(true)
    await expect(store.begin(aTurn('turn-2'))).rejects.toBeInstanceOf(StoreUnavailableError)
    redis.server.child.resume()
    await until(answers)
    expect(states.at(-1)).toBe('closed')
    expect(await store.begin(aTurn('turn-3'))).toMatchObject({ kind: 'active' })
  })

  test('that is frozen for so long that the connection is given up is found again as well', async () => {
    await open({ commandTimeoutMs: 50 })
    await createActive(under)
    redis.server.child.pause()
    await until(async () => {
      await answers()
      return faults.some(({ message }) => message.includes('Socket timeout'))
    })
    redis.server.child.resume()
    await until(answers)

    expect(await store.begin(aTurn('turn-2'))).toMatchObject({ kind: 'active' })
  })

  describe('that is full', () => {
    beforeEach(async () => {
      await open({ commandTimeoutMs: 2000 })
      await createActive(under)
      await storeKv(under, 'artefact-1', 1)
      await store.begin(aTurn('turn-2'))
      await redis.raw.config('SET', 'maxmemory', '1')
    })

    test.each([
      { name: 'create', call: () => store.create(newSession({ key: sessionKey('other') })) },
      { name: 'begin', call: () => store.begin(aTurn('turn-3')) },
      { name: 'announce', call: () => announceFor(under, 'artefact-2') },
      { name: 'setTtl', call: () => store.setTtl({ ...owned, ttlSeconds: 60 }) },
    ])('refuses to $name until there is room', async ({ call }) => {
      await expect(call()).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(states).toEqual([])
      await redis.raw.config('SET', 'maxmemory', '0')
      await expect(call()).resolves.not.toBe(null)
    })

    test('still reads', async () => {
      expect(await store.get(owned)).toMatchObject({ turns: 1 })
      expect(await store.list({ tenant: alice, limit: 10, after: undefined })).toMatchObject({ hasMore: false })
      expect(await store.counts()).toEqual({ removals: 0, sessions: 1 })
      expect(await store.knownArtefacts(['artefact-1'])).toEqual(new Set(['artefact-1']))
    })

    test.each([
      { name: 'completes a turn', call: () => store.complete(completed('turn-2')), kind: { kind: 'completed' } },
      { name: 'abandons a turn', call: () => store.abandon({ key: session, turnId: 'turn-2' }), kind: undefined },
    ])('still $name', async ({ call, kind }) => {
      expect(await call()).toEqual(kind === undefined ? undefined : expect.objectContaining(kind))
      await redis.raw.config('SET', 'maxmemory', '0')
      expect(await store.get(owned)).toMatchObject({ turns: kind === undefined ? 1 : 2 })
    })

    test('still deletes, and hands the removal out', async () => {
      expect(await store.remove(owned)).toBe(true)
      const removal = await claimOne(under)
      expect(removal).toMatchObject({ id: `s:${session}`, payload: '{"file":"artefact-1"}' })
      await store.ack([removal])
      expect(await store.counts()).toEqual({ removals: 0, sessions: 0 })
    })
  })

  test('that became a replica refuses writes, and is used again when it is the master', async () => {
    await open({ commandTimeoutMs: 2000 })
    await createActive(under)
    await redis.raw.replicaof('127.0.0.1', '1')
    await expect(store.begin(aTurn('turn-2'))).rejects.toBeInstanceOf(StoreUnavailableError)
    await redis.raw.replicaof('NO', 'ONE')

    await until(async () => {
      try {
        return (await store.begin(aTurn('turn-2'))).kind === 'active'
      } catch {
        return false
      }
    })
  })

  test('that is busy with a script of someone else is unavailable, not broken', async () => {
    await open({ commandTimeoutMs: 5000 })
    await createActive(under)
    await redis.raw.config('SET', 'busy-reply-threshold', '1')
    const endless = redis.raw.eval('while true do end', 0).catch(() => 'killed')

    await expect(store.begin(aTurn('turn-2'))).rejects.toBeInstanceOf(StoreUnavailableError)
    const other = redis.raw.duplicate({ enableReadyCheck: false, disableClientInfo: true })
    try {
      await other.script('KILL')
    } finally {
      other.disconnect()
    }
    expect(await endless).toBe('killed')
  })

  test('a user with the rights that the documentation names can do everything', async () => {
    await open({ commandTimeoutMs: 2000 })
    // As in docs/redis.md.
    const rules = '~own:* +@string +@hash +@set +@sortedset +@keyspace +@scripting +@connection +time -@dangerous'
    await redis.raw.acl('SETUSER', 'gateway', 'on', '>secret', ...rules.split(' '))
    await open({ url: redis.server.url.replace('//', '//gateway:secret@'), keyPrefix: 'own:', commandTimeoutMs: 2000 })
    await createActive(under)
    await storeKv(under, 'artefact-1', 1)
    await storeKv(under, 'artefact-2', 2)
    await store.list({ tenant: alice, limit: 10, after: session })
    await store.setTtl({ ...owned, ttlSeconds: 60 })
    await store.begin(aTurn('turn-2'))
    await store.abandon({ key: session, turnId: 'turn-2' })
    await store.dropKv({ key: session, artefactId: 'artefact-2', reason: 'damaged' })
    await store.remove(owned)
    await store.expireDue(10)
    await store.knownArtefacts(['artefact-1', 'unknown'])
    for (const removal of await store.claim({ limit: 10, leaseMs: 1000 })) {
      await store.retryLater(removal, 0)
      await store.ack([removal])
    }

    expect(await store.counts()).toEqual({ removals: 1, sessions: 0 })
    await open({
      url: redis.server.url.replace('//', '//gateway:secret@'),
      keyPrefix: 'foreign:',
      commandTimeoutMs: 2000,
    })
    await expect(store.create(newSession())).rejects.toBeInstanceOf(StoreUnavailableError)
  })

  test('no error tells a password, a URL, or what was to be stored', async () => {
    await redis.raw.config('SET', 'requirepass', 'right-password')
    await open({ url: redis.server.url.replace('//', '//:wrong-password@'), commandTimeoutMs: 2000 })
    const refused = await store.create(newSession({ sealedId: 'sealed-marker' })).catch((error: unknown) => error)
    await until(async () => faults.length > 0)
    const told = inspect([refused, faults], { depth: 20 })

    expect(refused).toBeInstanceOf(StoreUnavailableError)
    expect(told).toContain('WRONGPASS')
    expect(told).not.toMatch(/wrong-password|right-password|redis:\/\/|sealed-marker/)
  })
})
