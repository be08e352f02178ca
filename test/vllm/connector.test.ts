import { afterAll, beforeAll, describe, jest } from '@jest/globals'
import type { KvEvents } from '../../src/kvcache/kv-events/kv-events.ts'
import { describeKvConnector } from '../contract/kvcache/kv-connector-suite.ts'
import { describeKvRemoval } from '../contract/kvcache/kv-removal-suite.ts'
import { lmcacheTraits } from '../contract/kvcache/lmcache-traits.ts'
import { followFleet, startVllmBed } from './support/vllm-bed.ts'

jest.setTimeout(240_000)

describe.each(['tenant', 'session'] as const)('real vLLM and LMCache, isolation by %s', (isolation) => {
  let events: KvEvents
  beforeAll(() => {
    events = followFleet()
  })
  afterAll(async () => {
    await events.stop()
  })

  const traits = lmcacheTraits(isolation)
  const bed = () => startVllmBed({ isolation, events })
  describeKvConnector('lmcache', bed, traits)
  describeKvRemoval('lmcache', bed, traits)
})
