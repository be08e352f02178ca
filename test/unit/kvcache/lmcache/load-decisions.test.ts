import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvConnector, KvPresence } from '../../../../src/kvcache/kv-connector.ts'
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
  const loaded = (tokens: number) => ({ kind: 'loaded', tokens, loadMs: expect.any(Number) })
  const rows: readonly Row[] = [
    {
      name: 'in the engine, and the store is away',
      arrange: () => bed.fleet.coordinator.server.stop(),
      pod: 0,
      expected: (tokens) => ({ kind: 'resident', tokens }),
    },
    {
      name: 'in the store, of which a new coordinator knows nothing',
      arrange: () => bed.fleet.coordinator.restart(),
      pod: 1,
      expected: loaded,
    },
    { name: 'nowhere', arrange: () => bed.fleet.empty(), pod: 1, expected: () => ({ kind: 'missing' }) },
    {
      name: 'in the store, and its token ids are lost',
      arrange: () => bed.vault.lose(),
      pod: 1,
      expected: (tokens) => ({ kind: 'on-demand', tokens }),
    },
    {
      name: 'in a store that answers 500',
      arrange: () => bed.fleet.onCall(({ server }) => (server === 'coordinator' ? 'fail' : undefined)),
      pod: 1,
      expected: () => ({ kind: 'failed', cause: expect.objectContaining({ name: 'LmcacheFault' }) }),
    },
    {
      name: 'in a store whose port is closed',
      arrange: () => bed.fleet.coordinator.server.stop(),
      pod: 1,
      expected: () => ({ kind: 'failed', cause: expect.objectContaining({ name: 'LmcacheFault' }) }),
    },
    {
      name: 'in the store, and the pod has no LMCache server',
      arrange: () => {
        bed.fleet.absent.add('instance-1')
        connector = bed.connect()
      },
      pod: 1,
      expected: () => ({ kind: 'failed', cause: expect.objectContaining({ name: 'LmcacheFault' }) }),
    },
    {
      name: 'partly in the store',
      arrange: () => {
        const [last] = bed.fleet.store.keys().slice(-1)
        if (last !== undefined) bed.fleet.store.delete(last)
      },
      pod: 1,
      expected: (tokens) => loaded(tokens - 64),
    },
  ]
  test.each(rows)('$name', async ({ arrange, pod, expected }) => {
    await arrange()
    expect(await attach(pod)).toEqual(expected(kv.tokens))
  })

  test('in the memory of the instance, and the engine has dropped it', async () => {
    await bed.fleet.pods[0].engine.evict(salt)
    await eventually(async () => 'tier' in (await attach(0)))
    expect(await attach(0)).toEqual({ kind: 'resident', tokens: kv.tokens, tier: 'cpu' })
  })

  test.each(['freeze', 'held prefetch'] as const)('in a store that is slower than the budget: %s', async (how) => {
    bed.fleet.onCall(({ path }) => (how === 'freeze' && path === '/directory/lookup' ? 'freeze' : undefined))
    const letGo = bed.pods[1].holdLoads()
    expect(await attach(1, AbortSignal.timeout(50))).toEqual({ kind: 'timed-out' })
    letGo()
  })

  test('20 turns at once make one prefetch', async () => {
    const found = await Promise.all(Array.from({ length: 20 }, () => attach(1)))
    expect(found).toEqual(Array(20).fill(loaded(kv.tokens)))
    expect(bed.pods[1].loads()).toBe(1)
  })

  test('a load whose turn has timed out serves the next turn', async () => {
    const letGo = bed.pods[1].holdLoads()
    expect(await attach(1, AbortSignal.timeout(50))).toEqual({ kind: 'timed-out' })
    letGo()
    await eventually(() => bed.fleet.pods[1].instance.memory.keys().length > 0)
    expect(['loaded', 'resident']).toContain((await attach(1)).kind)
    expect(bed.pods[1].loads()).toBe(1)
  })
})
