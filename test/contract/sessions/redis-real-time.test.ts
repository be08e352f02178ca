import { beforeEach, describe, expect, test } from '@jest/globals'
import { createRedisSessionStore } from '../../../src/sessions/redis/create-redis-session-store.ts'
import { eventually } from '../../support/eventually.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { redisNowMs } from './age-redis-store.ts'
import { callsOn, type StoreUnderTest } from './store-under-test.ts'

/** The shared suite moves the times in Redis; here they pass. */
describe("the Redis session store by Redis' own clock", () => {
  const redis = useTestRedis()
  let under: StoreUnderTest
  const { announce, begin, claim, commit, counts, createActive, get, nowMs } = callsOn(() => under)

  beforeEach(async () => {
    const connection = await redis().connect()
    under = {
      store: createRedisSessionStore({ connection, tombstoneSeconds: 1 }),
      nowMs: () => redisNowMs(redis().raw),
      advance: () => Promise.reject(new Error('time passes by itself')),
    }
  })

  test('a session expires, and then its tombstone', async () => {
    const { expiresAtMs } = await createActive({ ttlSeconds: 1 })
    await eventually(async () => (await get()) === undefined)
    expect(await nowMs()).toBeGreaterThanOrEqual(expiresAtMs)

    await eventually(async () => (await begin('turn-2', { leaseMs: 1 })).kind === 'unknown')
    expect(await counts()).toEqual({ removals: 1, sessions: 0 })
  })

  test('an announced artefact is due after its grace, and again when its claim runs out', async () => {
    await announce('artefact-1', { graceMs: 50 })
    const attempts: number[] = []
    await eventually(async () => {
      const claimed = await claim(50)
      attempts.push(...claimed.map(({ attempt }) => attempt))
      return attempts.length === 3
    })

    expect(attempts).toEqual([1, 2, 3])
    expect(await commit('artefact-1')).toBe(false)
  })
})
