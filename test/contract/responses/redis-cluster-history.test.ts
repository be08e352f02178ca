import { expect, test } from '@jest/globals'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { alice, bob, callsOn, nameOf } from './history-calls.ts'
import { describeHistory } from './history-suite.ts'
import { clusterHistory } from './history-under-test.ts'

const cluster = useTestRedisCluster()

describeHistory('the history in a Redis Cluster', () => clusterHistory(cluster()))

test('tenants have slots of their own, and each of them all of its keys in one', async () => {
  const { store, prefix } = await clusterHistory(cluster())
  const { begin, follow } = callsOn(store)
  for (const tenant of [alice, bob]) {
    await begin('r1', { tenant })
    await follow('r1', 'r2', { tenant })
  }

  const slotsOf = async (tenant: typeof alice) => {
    const keys = await cluster().keys(`${prefix}*{${nameOf(tenant)}}*`)
    expect(keys.length).toBeGreaterThan(4)
    return new Set(await Promise.all(keys.map((key) => cluster().slotOf(key))))
  }
  const [alices, bobs] = await Promise.all([slotsOf(alice), slotsOf(bob)])
  expect([alices.size, bobs.size, new Set([...alices, ...bobs]).size]).toEqual([1, 1, 2])
})
