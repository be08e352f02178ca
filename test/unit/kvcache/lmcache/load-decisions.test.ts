import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { StoredKv } from '../../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import type { KvConnector, KvPresence } from '../../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../../support/eventually.ts'

describe('presence of stored KV', () => {
  let bed: LmcacheBed
  let connector: KvConnector
  let session: TestSession
  let prompt: string
  let kv: StoredKv
  let salt: string

  beforeEach(async () => {
    bed = await startLmcacheBed()
    connector = bed.connect()
    session = newSession()
    prompt = newPrompt()
    const turn = await serveTurn(connector, { session, pod: bed.pods[0], prompt })
    if (turn.kv === undefined) throw new Error('the first turn stored nothing')
    kv = turn.kv
    salt = turn.attached.fields['cache_salt'] as string
  })
  afterEach(() => bed.close())

  const attach = async (pod: number, signal = anySignal()): Promise<KvPresence> => {
    const outcome = await connector.attach(turnOf(session, bed.pods[pod] ?? bed.pods[0]), kv, { signal })
    return outcome.presence
  }

  interface Row {
    readonly name: string
    readonly arrange: () => unknown
    readonly pod: number
    readonly expected: (tokens: number) => unknown
  }
  const onDemand = (tokens: number) => ({ kind: 'on-demand', tokens })
  const fault = { kind: 'failed', cause: expect.objectContaining({ name: 'LmcacheFault' }) }
  const rows: readonly Row[] = [
    {
      name: 'in the engine, and the store is away',
      arrange: () => bed.fleet.coordinator.server.stop(),
      pod: 0,
      expected: (tokens) => ({ kind: 'resident', tokens }),
    },
    { name: 'in the store', arrange: () => {}, pod: 1, expected: onDemand },
    {
      name: 'in the memory beside the engine',
      arrange: async () => {
        await bed.fleet.pods[0].engine.evict(salt)
        await eventually(async () => 'tier' in (await attach(0)))
      },
      pod: 0,
      expected: (tokens) => ({ kind: 'resident', tokens, tier: 'cpu' }),
    },
    {
      name: 'in the memory beside another engine alone',
      arrange: async () => {
        bed.fleet.pods[0].instance.deleteChunks(bed.fleet.store.keys(), 'l2')
        await bed.fleet.directory.arrived()
      },
      pod: 1,
      expected: () => ({ kind: 'missing', isKept: true }),
    },
    {
      name: 'in the store, of which a new coordinator knows nothing',
      arrange: () => bed.fleet.coordinator.restart(),
      pod: 1,
      expected: () => ({ kind: 'missing', isKept: true }),
    },
    { name: 'nowhere', arrange: () => bed.fleet.empty(), pod: 1, expected: () => ({ kind: 'missing', isKept: true }) },
    { name: 'in the store, and its token ids are lost', arrange: () => bed.loseState(), pod: 1, expected: onDemand },
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
        connector = bed.connect()
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
      expected: (tokens) => onDemand(tokens - 64),
    },
  ]
  test.each(rows)('$name', async ({ arrange, pod, expected }) => {
    await arrange()
    expect(await attach(pod)).toEqual(expected(kv.tokens))
  })

  test('in a store that is slower than the budget', async () => {
    bed.fleet.onCall(({ path }) => (path === '/directory/lookup' ? 'freeze' : undefined))
    expect(await attach(1, AbortSignal.timeout(50))).toEqual({ kind: 'timed-out' })
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
    expect(await attach(1)).toEqual(onDemand(kv.tokens))
  })

  test('a turn whose stored KV is not listed stores it again', async () => {
    bed.fleet.empty()
    const { offloaded } = await serveTurn(connector, { session, pod: bed.pods[1], prompt, kv })
    expect(offloaded).toMatchObject({ kind: 'stored', tokens: kv.tokens })
  })
})
