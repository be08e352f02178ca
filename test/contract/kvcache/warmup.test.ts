import { describe, expect } from '@jest/globals'
import type { Isolation } from '../../../src/kvcache/cache-salts.ts'
import { describeKvConnector } from './kv-connector-suite.ts'
import { describeKvRemoval } from './kv-removal-suite.ts'
import { type KvTraits, newPrompt } from './kv-test-bed.ts'
import { startWarmupBed } from './warmup-bed.ts'

/** Only a session's first request is kept. A pod that has computed it once counts as holding it until its process ends. */
const warmupTraits = (isolation: Isolation): KvTraits => ({
  newPrompt,
  more: ' And one more question.',
  storedTokens: ({ promptTokens }) => [promptTokens],
  grows: false,
  onItsPod: (tokens) => ({ kind: 'resident', tokens }),
  onItsLastPod: (tokens) => ({ kind: 'resident', tokens }),
  onItsFormerPod: (tokens) => ({ kind: 'resident', tokens }),
  afterItsArtefact: () => ({ kind: 'empty' }),
  loadsOfTwoGateways: [1, 2],
  overlappingTurns: [['unchanged', 'unchanged']],
  removalDuringTurn: 'removed',
  servedElsewhere: 'stored',
  storesShort: true,
  sharing: isolation === 'tenant' ? 'tenant' : 'nobody',
  afterMissing: 'none',
  damage: ['changed', 'cut'],
  fieldsAlone: { cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) },
  afterTimeout: ['stored'],
  lateLoad: 'failed',
  // It is not asked.
  unreachable: 'empty',
  orphans: 'none',
})

describe.each(['tenant', 'session'] as const)('simulated engines, isolation by %s', (isolation) => {
  const make = () => startWarmupBed({ isolation })
  describeKvConnector('warmup', make, warmupTraits(isolation))
  describeKvRemoval('warmup', make, warmupTraits(isolation))
})
