import { afterAll, beforeAll, describe } from '@jest/globals'
import { describeKvConnector } from './kv-connector-suite.ts'
import { describeKvRemoval } from './kv-removal-suite.ts'
import { type LmcacheFleet, startLmcacheFleet } from './lmcache-bed.ts'
import { lmcacheTraits } from './lmcache-traits.ts'

const chunkTokens = 64

describe.each([
  { isolation: 'tenant', events: true },
  { isolation: 'session', events: true },
  // Without events, KV is isolated by session, whatever is asked for.
  { isolation: 'tenant', events: false },
] as const)('a simulated fleet, isolation by $isolation, events: $events', ({ isolation, events }) => {
  let fleet: LmcacheFleet
  beforeAll(async () => {
    fleet = await startLmcacheFleet({ isolation, events, chunkTokens })
  })
  afterAll(() => fleet.close())

  const traits = lmcacheTraits({ isolation, events })
  describeKvConnector('lmcache', () => fleet.bed(), traits)
  describeKvRemoval('lmcache', () => fleet.bed(), traits)
})
