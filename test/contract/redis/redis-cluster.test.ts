import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedisCluster, type TestRedisCluster } from '../../support/redis-cluster/start-test-redis-cluster.ts'

let cluster: TestRedisCluster
beforeAll(async () => {
  cluster = await startTestRedisCluster()
})
afterAll(() => cluster?.close())

const answers = (connection: RedisConnection, key: string): Promise<true> =>
  eventually(async () => {
    await connection.get(key)
    return true as const
  })

test('a key whose primary was killed is served by its replica', async () => {
  const connection = await cluster.connect()
  const { index } = await cluster.primaryOf('key')
  await connection.set('key', 'value', 600_000)
  await cluster.untilWell()
  await cluster.kill(index)
  await cluster.untilReplaced(index)
  await answers(connection, 'key')
  expect(await connection.get('key')).toBe('value')
  await cluster.restart(index)
  await cluster.untilWell()
})
