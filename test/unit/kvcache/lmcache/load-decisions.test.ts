import { beforeEach, describe, expect, test } from '@jest/globals'
import type { KvArtefact, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
import { startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { useKvBed } from '../../../contract/kvcache/use-kv-bed.ts'
import { eventually } from '../../../support/eventually.ts'

describe('presence of stored KV', () => {
  const kit = useKvBed(() => startLmcacheBed())
  let stored: KvArtefact
  beforeEach(async () => {
    stored = await kit.begin()
  })

  const presenceOn = async (pod: number, signal?: AbortSignal): Promise<KvPresence> =>
    (await kit.prepare(kit.bed.pods[pod] ?? kit.first, stored, signal)).presence

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
      name: 'in the engine is a hit, also while the store is away',
      arrange: () => kit.bed.fleet.coordinator.stop(),
      pod: 0,
      expected: inEngine,
    },
    {
      name: 'in the memory beside the engine is a hit',
      arrange: async () => {
        const { fields } = await kit.prepare(kit.first, stored)
        await kit.bed.fleet.pods[0].engine.evict(fields['cache_salt'] as string)
        await eventually(async () => {
          const presence = await presenceOn(0)
          return presence.kind === 'hit' && presence.tier !== 'gpu'
        })
      },
      pod: 0,
      expected: (tokens) => ({ kind: 'hit', tier: 'cpu', tokens }),
    },
    {
      name: 'in the memory beside another engine alone is a miss',
      arrange: async () => {
        kit.bed.fleet.pods[0].instance.deleteChunks(kit.bed.fleet.store.keys(), 'l2')
        await kit.bed.fleet.directory.arrived()
      },
      pod: 1,
      expected: notListed,
    },
    {
      name: 'in the store, of which a new coordinator knows nothing, is a miss',
      arrange: () => kit.bed.fleet.directory.forget(),
      pod: 1,
      expected: notListed,
    },
    {
      name: 'in a store whose port is closed is a failed load',
      arrange: () => kit.bed.fleet.coordinator.stop(),
      pod: 1,
      expected: () => fault,
    },
    {
      name: 'in the store is a hit, also where the pod has no LMCache server',
      arrange: () => {
        kit.bed.fleet.absent.add('instance-1')
        kit.cache = kit.bed.connect()
      },
      pod: 1,
      expected: inStore,
    },
    {
      name: 'partly in the store is a hit of that part',
      arrange: async () => {
        kit.bed.fleet.pods[0].instance.deleteChunks(kit.bed.fleet.store.keys().slice(-1), 'l2')
        await kit.bed.fleet.directory.arrived()
      },
      pod: 1,
      expected: (tokens) => inStore(tokens - 64),
    },
  ]
  test.each(rows)('$name', async ({ arrange, pod, expected }) => {
    await arrange()
    expect(await presenceOn(pod)).toEqual(expected(stored.tokens))
  })

  test('in a store that is slower than the budget is a miss, load_timeout', async () => {
    const budget = new AbortController()
    // The engine is known.
    await presenceOn(1)
    kit.bed.fleet.onCall(({ path }) => {
      if (path !== '/directory/lookup') return undefined
      budget.abort()
      return 'freeze'
    })
    expect(await presenceOn(1, budget.signal)).toEqual({ kind: 'miss', reason: 'load_timeout' })
  })

  test('in a store that answers more than 4 MiB is a hit', async () => {
    const entries = kit.bed.fleet.directory.entries().map(({ key }) => ({
      key,
      placements: [{ instance_id: 'instance-0', tier: 'l2', size_bytes: 1 }],
      // A coordinator may keep the token ids of chunks.
      token_ids: Array<number>(200_000).fill(100_000),
    }))
    const nonsense = JSON.stringify({ chunks: entries.length, results: entries })
    kit.bed.fleet.onCall(({ path }) => (path === '/directory/lookup' ? { nonsense } : undefined))
    expect(nonsense.length).toBeGreaterThan(4 * 1024 * 1024)
    expect(await presenceOn(1)).toEqual(inStore(stored.tokens))
  })
})
