import { beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { LedgerModel } from './ledger-model.ts'
import { anySteps, pod, take } from './ledger-steps.ts'

const redis = useTestRedis()
const cluster = useTestRedisCluster({ replicas: 0 })
let [one, many]: readonly RedisConnection[] = []
let ledgers = 0
beforeAll(async () => {
  ;[one, many] = [await redis().connect(), await cluster().connect()]
})

const newRedisLedger = (connection: RedisConnection | undefined): SlotLedger => {
  if (connection === undefined) throw new Error('Redis runs only while tests do')
  ledgers += 1
  return createRedisSlotLedger({ ...connection, keyPrefix: `fuzz${ledgers}:` })
}

const entriesOf = async (ledger: SlotLedger) => [...(await ledger.list(pod))].sort((a, b) => a.slot - b.slot)

describe('slot ledgers under any sequence of calls', () => {
  test('answer as the model of a ledger does', async () => {
    const property = fc.asyncProperty(anySteps, async (steps) => {
      const [ledger, model] = [createMemorySlotLedger(), new LedgerModel()]
      for (const step of steps) expect(model.learn(step, await take(ledger, step))).toBeUndefined()
    })
    await fc.assert(property, { numRuns: 500 })
  })

  test.each([
    { where: 'Redis', connectionOf: () => one, numRuns: 75 },
    { where: 'a Redis Cluster', connectionOf: () => many, numRuns: 25 },
  ])('answer alike in memory and in $where', async ({ connectionOf, numRuns }) => {
    const property = fc.asyncProperty(anySteps, async (steps) => {
      const [memory, remote] = [createMemorySlotLedger(), newRedisLedger(connectionOf())]
      for (const step of steps) {
        const expected = await take(memory, step)
        expect(await take(remote, step)).toEqual(expected)
        expect(await entriesOf(remote)).toEqual(await entriesOf(memory))
      }
    })
    await fc.assert(property, { numRuns })
  })
})
