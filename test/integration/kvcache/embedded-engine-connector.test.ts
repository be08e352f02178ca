import { afterAll, beforeAll, describe } from '@jest/globals'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import { describeKvConnector } from '../../contract/kvcache/kv-connector-suite.ts'
import { describeKvRemoval } from '../../contract/kvcache/kv-removal-suite.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { describeSlotKv } from './slot-kv-suite.ts'
import { type SlotEngines, slotTraits, startSlotEngines } from './slots-test-bed.ts'
import { startEmbeddedEngine } from './start-embedded-engine.ts'
import { describeStorm } from './storm.ts'

const redis = useTestRedis()

describe('embedded engine', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    engines = await startSlotEngines(startEmbeddedEngine)
  }, 300_000)
  afterAll(() => engines.end())

  // What depends on how slots behave: on the real ones, by llama-server-connector.test.ts.
  const makeBed = () => engines.bed(async () => createRedisSlotLedger(await redis().connect()))
  describeKvConnector('llamacpp-slots', makeBed, slotTraits)
  describeKvRemoval('llamacpp-slots', makeBed, slotTraits)
  describeSlotKv(makeBed)
  describeStorm(makeBed)
})
