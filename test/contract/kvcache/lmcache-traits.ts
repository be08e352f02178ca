import { expect } from '@jest/globals'
import { type KvTraits, newPrompt } from './kv-test-bed.ts'

/** How a fleet of vLLM with LMCache is set up, as far as it decides what the connector can do. */
export interface LmcacheSetting {
  readonly isolation: 'tenant' | 'session'
  readonly events: boolean
  readonly chunkTokens: number
}

/** LMCache stores whole chunks of prompts; without KV events, those of a session's first prompt have names and those of later turns are counted. */
export const lmcacheTraits = ({ isolation, events, chunkTokens }: LmcacheSetting): KvTraits => {
  const later = (tokens: number, kind: string) => (events ? { kind, tokens } : { kind: 'on-demand', tokens })
  return {
    newPrompt,
    more: ' And one more question.'.padEnd(chunkTokens, ' Please answer it at length.'),
    storedTokens: ({ promptTokens }) => [Math.floor(promptTokens / chunkTokens) * chunkTokens],
    grows: true,
    onItsPod: (tokens) => ({ kind: 'resident', tokens, ...(events ? {} : { tier: 'cpu' }) }),
    onItsLastPod: (tokens) => later(tokens, 'resident'),
    onItsFormerPod: (tokens) => later(tokens, 'loaded'),
    afterItsArtefact: () => ({ kind: 'empty' }),
    hitsOfTwoGateways: 20,
    loadsOfTwoGateways: [1, 2],
    unreadable: 'missing',
    overlappingTurns: [
      ['stored', 'stored'],
      ['stored', 'unchanged'],
      ['unchanged', 'stored'],
    ],
    removalDuringTurn: 'removed',
    servedElsewhere: 'stored',
    storesShort: false,
    sharing: isolation === 'tenant' && events ? 'tenant' : 'nobody',
    afterMissing: events ? 'stored' : 'none',
    // LMCache keeps no checksums.
    damage: ['cut'],
    fieldsAlone: expect.objectContaining({
      cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/),
      session_id: expect.any(String),
    }),
    afterTimeout: ['none', 'unchanged'],
    lateLoad: 'failed',
    unreachable: 'failed',
    orphans: 'unnamed',
  }
}
