import { afterAll, beforeAll, describe } from '@jest/globals'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import { startLlamaServer } from '../../support/start-llama-server.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'
import { describeSlotTurns } from './slot-turns-suite.ts'
import { describeSlots } from './slots-suite.ts'
import { contextTokensPerSlot, type SlotEngines, slotsPerPod, startSlotEngines } from './slots-test-bed.ts'

const redis = useTestRedis()

describe('real llama-server', () => {
  let engines: SlotEngines
  beforeAll(async () => {
    engines = await startSlotEngines(async (options) => {
      const server = await startLlamaServer({ ...options, slots: slotsPerPod, contextTokensPerSlot })
      return server.child
    })
  }, 300_000)
  afterAll(() => engines.end())

  // The contract does not depend on the engine: it is tested on the embedded one. Here: what depends on real slots.
  const makeBed = () => engines.bed(async () => createRedisSlotLedger(await redis().connect()))
  describeSlots(makeBed)
  describeSlotTurns(makeBed)
})
