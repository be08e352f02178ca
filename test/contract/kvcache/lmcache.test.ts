import { afterAll, beforeAll, describe } from '@jest/globals'
import { describeKvConnector } from './kv-connector-suite.ts'
import { describeKvRemoval } from './kv-removal-suite.ts'
import { type LmcacheFleet, startLmcacheFleet } from './lmcache-bed.ts'
import { lmcacheTraits } from './lmcache-traits.ts'

const chunkTokens = 64

describe.each(['tenant', 'session'] as const)('a simulated fleet, isolation by %s', (isolation) => {
  let fleet: LmcacheFleet
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation, chunkTokens })
  })
  afterAll(() => fleet.close())

  const traits = lmcacheTraits(isolation)
  describeKvConnector('lmcache', () => fleet.bed(), traits)
  describeKvRemoval('lmcache', () => fleet.bed(), traits)
})
