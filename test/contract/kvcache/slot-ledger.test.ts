import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { useLedger } from './slot-ledger-calls.ts'
import { describeSlotTurns } from './slot-turns-suite.ts'
import { describeSlotUpkeep } from './slot-upkeep-suite.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
}, 300_000)
afterAll(() => redis.close())
const connect = () => redis.connect({ commandTimeoutMs: 2_000 })

describe.each<{ readonly name: string; readonly make: () => Promise<SlotLedger> }>([
  { name: 'memory', make: async () => createMemorySlotLedger() },
  { name: 'Redis', make: async () => createRedisSlotLedger(await connect()) },
])('SlotLedger: $name', ({ make }) => {
  const calls = useLedger(make)
  describeSlotTurns(calls)
  describeSlotUpkeep(calls)
})

describe('the slot ledger in Redis', () => {
  const claim = {
    pod: 'pod:1',
    session: 'alice' as SessionKey,
    leaseMs: 60_000,
    loadMs: 60_000,
    slots: [{ id: 0, idle: true }],
  }
  const key = (prefix: string): string => `${prefix}kv:slots`

  test('is shared by two gateway processes', async () => {
    const connection = await connect()
    const [first, second] = [createRedisSlotLedger(connection), createRedisSlotLedger(connection)]
    const roles = await Promise.all([first.claim({ ...claim, turnId: 't1' }), second.claim({ ...claim, turnId: 't2' })])
    const found = roles.map((outcome) => (outcome.kind === 'claimed' ? outcome.role : outcome.kind))
    expect(found.sort()).toEqual(['load', 'wait'])
  })

  test('ignores a damaged record', async () => {
    const connection = await connect()
    const ledger = createRedisSlotLedger(connection)
    for (const text of ['{"owner":', '[]', '"text"', '{"owner":"bob","leases":{}}']) {
      await redis.raw.hset(key(connection.keyPrefix), 'p|pod:1|0', text)
      expect(await ledger.list()).toEqual([])
      expect(await ledger.claim({ ...claim, turnId: `t ${text}` })).toMatchObject({ role: 'load', others: 0 })
    }
  })

  test('keeps no slot of a forgotten pod', async () => {
    const connection = await connect()
    const ledger = createRedisSlotLedger(connection)
    await ledger.claim({ ...claim, turnId: 't1' })
    await ledger.release({ pod: 'pod:1', slot: 0, turnId: 't1' })
    await ledger.forgetPod('pod:1')
    expect(await redis.raw.hkeys(key(connection.keyPrefix))).toEqual(['claims'])
  })
})
