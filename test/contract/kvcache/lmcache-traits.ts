import { expect } from '@jest/globals'
import { type KvTraits, newPrompt } from './kv-test-bed.ts'

/** How a fleet of vLLM with LMCache is set up, as far as it decides what the connector can do. */
export interface LmcacheSetting {
  readonly isolation: 'tenant' | 'session'
  readonly events: boolean
  readonly chunkTokens: number
}

/**
 * LMCache stores whole chunks of prompts, and the engine loads them by itself. Without KV events chunks have no names: an artefact stands for all KV
 * under the session's salt, and counts the tokens of the turn that stored it.
 */
export const lmcacheTraits = ({ isolation, events, chunkTokens }: LmcacheSetting): KvTraits => {
  const stored = (tokens: number) => ({ kind: 'on-demand', tokens })
  const resident = (tokens: number) => (events ? { kind: 'resident', tokens } : stored(tokens))
  return {
    newPrompt,
    more: ' And one more question.'.padEnd(chunkTokens, ' Please answer it at length.'),
    storedTokens: ({ promptTokens }) => [Math.floor(promptTokens / chunkTokens) * chunkTokens],
    grows: events,
    onAnotherPod: stored,
    loadedBy: 'engine',
    onItsPod: resident,
    onItsLastPod: resident,
    // The chunks that it lacks are in the store.
    onItsFormerPod: stored,
    afterItsArtefact: () => ({ kind: 'empty' }),
    hitsOfTwoGateways: 20,
    loadsOfTwoGateways: [0],
    unreadable: 'incompatible',
    overlappingTurns: events
      ? [
          ['stored', 'stored'],
          ['stored', 'unchanged'],
          ['unchanged', 'stored'],
        ]
      : [['unchanged', 'unchanged']],
    removalDuringTurn: 'removed',
    servedElsewhere: 'stored',
    storesShort: false,
    sharing: isolation === 'tenant' && events ? 'tenant' : 'nobody',
    afterMissing: 'stored',
    // LMCache keeps no checksums, and the gateway does not read the store.
    damage: ['cut'],
    damaged: 'on-demand',
    fieldsAlone: { cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) },
    unreachable: 'failed',
    orphans: 'none',
  }
}
