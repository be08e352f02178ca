import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { type RedisForTests, startRedisForTests } from './redis-for-tests.ts'
import { describeSlotTurns } from './slot-turns-suite.ts'
import { describeSlotUpkeep } from './slot-upkeep-suite.ts'

let redis: RedisForTests
beforeAll(async () => {
  redis = await startRedisForTests()
}, 300_000)
afterAll(() => redis.end())

const make = async () => {
  const connection = await redis.connect()
  return { ledger: createRedisSlotLedger(connection), close: () => connection.close() }
}
describeSlotTurns('Redis', make)
describeSlotUpkeep('Redis', make)

describe('the ledger in Redis', () => {
  const claim = {
    pod: 'pod:1',
    session: 'alice' as SessionKey,
    leaseMs: 60_000,
    loadMs: 60_000,
    slots: [{ id: 0, idle: true }],
  }
  const key = (prefix: string): string => `${prefix}kv:slots`

  test('is the same for two gateway processes', async () => {
    const connection = await redis.connect()
    const [first, second] = [createRedisSlotLedger(connection), createRedisSlotLedger(connection)]
    const roles = await Promise.all([first.claim({ ...claim, turnId: 't1' }), second.claim({ ...claim, turnId: 't2' })])
    expect(roles.map((outcome) => (outcome.kind === 'claimed' ? outcome.role : outcome.kind)).sort()).toEqual([
      'load',
      'wait',
    ])
    await connection.close()
  })

  test('treats a record that cannot be read as none', async () => {
    const connection = await redis.connect()
    const ledger = createRedisSlotLedger(connection)
    const spoil = { name: 'spoil', source: `return redis.call('HSET', KEYS[1], 'p|pod:1|0', ARGV[1])` }
    for (const text of ['{"owner":', '[]', '"text"', '{"owner":"bob","leases":{}}']) {
      await connection.run(spoil, [key(connection.keyPrefix)], [text])
      expect(await ledger.list()).toEqual([])
      expect(await ledger.claim({ ...claim, turnId: `t ${text}` })).toMatchObject({ role: 'load', others: 0 })
    }
    await connection.close()
  })

  test('keeps nothing behind when everything was wiped', async () => {
    const connection = await redis.connect()
    const ledger = createRedisSlotLedger(connection)
    await ledger.claim({ ...claim, turnId: 't1' })
    await ledger.release({ pod: 'pod:1', slot: 0, turnId: 't1' })
    await ledger.forgetPod('pod:1')
    const fields = { name: 'fields', source: `return redis.call('HKEYS', KEYS[1])` }
    expect(await connection.run(fields, [key(connection.keyPrefix)], [])).toEqual(['claims'])
    await connection.close()
  })
})
