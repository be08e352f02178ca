import { afterAll, beforeAll, describe } from '@jest/globals'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import { describeKvConnector } from '../../contract/kvcache/kv-connector-suite.ts'
import { describeKvRemoval } from '../../contract/kvcache/kv-removal-suite.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { describeSlotKv } from './slot-kv-suite.ts'
import { describeSlotTurns } from './slot-turns-suite.ts'
import { describeSlots } from './slots-suite.ts'
import { type SlotEngines, slotTraits, startSlotEngines } from './slots-test-bed.ts'
import { startEmbeddedEngine } from './start-embedded-engine.ts'
import { describeStorm } from './storm.ts'

describe('embedded engine', () => {
  let engines: SlotEngines
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
    engines = await startSlotEngines(startEmbeddedEngine)
  }, 300_000)
  afterAll(async () => {
    await engines.end()
    await redis.close()
  })

  const makeBed = () => engines.bed(async () => createRedisSlotLedger(await redis.connect()))
  describeKvConnector('llamacpp-slots', makeBed, slotTraits)
  describeKvRemoval('llamacpp-slots', makeBed, slotTraits)
  describeSlotKv(makeBed)
  describeSlots(makeBed)
  describeSlotTurns(makeBed)
  describeStorm(makeBed)
})
