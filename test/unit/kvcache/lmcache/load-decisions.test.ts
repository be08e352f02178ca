import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import type { KvArtefact, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'

describe('presence of stored KV', () => {
  let bed: LmcacheBed
  let cache: KvCache
  let session: TestSession
  let prompt: string
  let stored: KvArtefact
  let salt: string

  beforeEach(async () => {
    bed = await startLmcacheBed()
    cache = bed.connect()
    session = newSession()
    prompt = newPrompt()
    const turn = await serveTurn(cache, { session, pod: bed.pods[0], prompt })
    if (turn.stored === undefined) throw new Error('the first turn stored nothing')
    stored = turn.stored
    salt = turn.prepared.fields['cache_salt'] as string
  })
  afterEach(() => bed.close())

  const presenceOn = async (pod: number, signal = anySignal()): Promise<KvPresence> => {
    const turn = turnOf(session, bed.pods[pod] ?? bed.pods[0], { stored })
    return (await cache.prepare(turn, { signal })).presence
  }

  interface Row {
    readonly name: string
    readonly arrange: () => unknown
    readonly pod: number
    readonly expected: (tokens: number) => unknown
  }
  const inEngine = (tokens: number) => ({ kind: 'hit', tier: 'gpu', tokens })
  const inStore = (tokens: number) => ({ kind: 'hit', tier: 'store', tokens })
  const notListed = () => ({ kind: 'miss', reason: 'kv_missing' })
  const fault = { kind: 'miss', reason: 'load_failed', cause: expect.objectContaining({ name: 'LmcacheFault' }) }
  const rows: readonly Row[] = [
    {
      name: 'in the engine, and the store is away',
      arrange: () => bed.fleet.coordinator.server.stop(),
      pod: 0,
      expected: inEngine,
    },
    { name: 'in the store', arrange: () => {}, pod: 1, expected: inStore },
    {
      name: 'in the memory beside the engine',
      arrange: async () => {
        await bed.fleet.pods[0].engine.evict(salt)
        await eventually(async () => {
          const presence = await presenceOn(0)
          return presence.kind === 'hit' && presence.tier !== 'gpu'
        })
      },
      pod: 0,
      expected: (tokens) => ({ kind: 'hit', tier: 'cpu', tokens }),
    },
    {
      name: 'in the memory beside another engine alone',
      arrange: async () => {
        bed.fleet.pods[0].instance.deleteChunks(bed.fleet.store.keys(), 'l2')
        await bed.fleet.directory.arrived()
      },
      pod: 1,
      expected: notListed,
    },
    {
      name: 'in the store, of which a new coordinator knows nothing',
      arrange: () => bed.fleet.coordinator.restart(),
      pod: 1,
      expected: notListed,
    },
    { name: 'nowhere', arrange: () => bed.fleet.empty(), pod: 1, expected: notListed },
    { name: 'in the store, and its token ids are lost', arrange: () => bed.loseState(), pod: 1, expected: inStore },
    {
      name: 'in a store that answers 500',
      arrange: () => bed.fleet.onCall(({ server }) => (server === 'coordinator' ? 'fail' : undefined)),
      pod: 1,
      expected: () => fault,
    },
    {
      name: 'in a store whose port is closed',
      arrange: () => bed.fleet.coordinator.server.stop(),
      pod: 1,
      expected: () => fault,
    },
    {
      name: 'in the store, and the pod has no LMCache server',
      arrange: () => {
        bed.fleet.absent.add('instance-1')
        cache = bed.connect()
      },
      pod: 1,
      expected: () => fault,
    },
    {
      name: 'partly in the store',
      arrange: async () => {
        bed.fleet.pods[0].instance.deleteChunks(bed.fleet.store.keys().slice(-1), 'l2')
        await bed.fleet.directory.arrived()
      },
      pod: 1,
      expected: (tokens) => inStore(tokens - 64),
    },
  ]
  test.each(rows)('$name', async ({ arrange, pod, expected }) => {
    await arrange()
    expect(await presenceOn(pod)).toEqual(expected(stored.tokens))
  })

  test('in a store that is slower than the budget', async () => {
    bed.fleet.onCall(({ path }) => (path === '/directory/lookup' ? 'freeze' : undefined))
    expect(await presenceOn(1, AbortSignal.timeout(50))).toEqual({ kind: 'miss', reason: 'load_timeout' })
  })

  test('in answers of more than 4 MiB', async () => {
    const entries = bed.fleet.directory.entries().map(({ key }) => ({
      key,
      placements: [{ instance_id: 'instance-0', tier: 'l2', size_bytes: 1 }],
      // A coordinator may keep the token ids of chunks.
      token_ids: Array<number>(200_000).fill(100_000),
    }))
    const nonsense = JSON.stringify({ chunks: entries.length, results: entries })
    bed.fleet.onCall(({ path }) => (path === '/directory/lookup' ? { nonsense } : undefined))
    expect(nonsense.length).toBeGreaterThan(4 * 1024 * 1024)
    expect(await presenceOn(1)).toEqual(inStore(stored.tokens))
  })

  test('a turn whose stored KV is not listed stores it again', async () => {
    bed.fleet.empty()
    const { finished } = await serveTurn(cache, { session, pod: bed.pods[1], prompt, stored })
    expect(finished).toMatchObject({ kind: 'stored', tokens: stored.tokens })
  })
})
