import { expect, test } from '@jest/globals'
import { createRedisCostModelStore } from '../../../src/routing/redis/redis-cost-model-store.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

const redis = useTestRedis()

test('load returns the last saved text of each engine', async () => {
  const store = createRedisCostModelStore(await redis().connect())
  expect(await store.load('engine-1')).toBeUndefined()
  await store.save('engine-1', 'old')
  await store.save('engine-1', 'new: π')
  await store.save('engine-2', 'other')
  expect(await Promise.all([store.load('engine-1'), store.load('engine-2')])).toEqual(['new: π', 'other'])
})

test('costs are shared by processes with one prefix, and expire after 30 days', async () => {
  await redis().raw.flushall()
  const connection = await redis().connect()
  await createRedisCostModelStore(connection).save('engine', 'text')
  const ttls = await Promise.all((await redis().raw.keys('*')).map((key) => redis().raw.pttl(key)))
  expect(ttls).toHaveLength(1)
  expect(ttls[0]).toBeGreaterThan(29 * 24 * 3_600_000)
  const { keyPrefix } = connection
  expect(await createRedisCostModelStore(await redis().connect({ keyPrefix })).load('engine')).toBe('text')
  expect(await createRedisCostModelStore(await redis().connect()).load('engine')).toBeUndefined()
})
