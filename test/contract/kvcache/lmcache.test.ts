import { afterAll, beforeAll, describe } from '@jest/globals'
import { describeKvConnector } from './kv-connector-suite.ts'
import { describeKvRemoval } from './kv-removal-suite.ts'
import { type LmcacheFleet, startLmcacheFleet } from './lmcache-bed.ts'
import { lmcacheTraits } from './lmcache-traits.ts'

// What isolation by session changes: test/unit/kvcache/lmcache/isolation.test.ts.
describe('a simulated fleet', () => {
  let fleet: LmcacheFleet
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation: 'tenant' })
  })
  afterAll(() => fleet.close())

  const traits = lmcacheTraits('tenant')
  describeKvConnector('lmcache', () => fleet.bed(), traits)
  describeKvRemoval('lmcache', () => fleet.bed(), traits)
})
