import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvConnector } from '../../../../src/kvcache/kv-connector.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import {
  type LmcacheBed,
  type LmcacheConnectOptions,
  type LmcacheFleet,
  startLmcacheFleet,
} from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'

describe('sweep', () => {
  let fleet: LmcacheFleet
  let bed: LmcacheBed
  beforeEach(async () => {
    fleet = await startLmcacheFleet({ isolation: 'tenant' })
    bed = await fleet.bed()
  })
  afterEach(async () => {
    await bed.close()
    await fleet.close()
  })

  const sweep = (connector: KvConnector) => connector.reconcile(async () => new Set(), anySignal())
  /** A turn of a gateway that died before the turn ended. */
  const dieInTurn = async (options: LmcacheConnectOptions, session: TestSession, prompt: string): Promise<void> => {
    const dying = bed.connect(options)
    const { fields } = await dying.attach(turnOf(session, bed.pods[0]), undefined, { signal: anySignal() })
    await bed.pods[0].run({ prompt, fields })
    await eventually(async () => (await bed.pods[0].probe(prompt)) === wholeChunks(prompt))
  }

  test('keeps chunks of a turn whose lease has not run out', async () => {
    const prompt = newPrompt()
    await dieInTurn({ leaseMs: 60_000 }, newSession(), prompt)
    const connector = bed.connect()
    const before = bed.fleet.chunks()
    // The first sweep of a process also looks for what was left by former ones.
    const deleted = await sweep(bed.connect({ orphanGraceMs: 60_000 }))
    expect([deleted, bed.fleet.chunks()]).toEqual([0, before])
    expect(bed.ledger.size).toBeGreaterThan(0)
    await connector.reconcile(async () => new Set(), anySignal())
  })

  test('keeps chunks without an artefact during their grace', async () => {
    await dieInTurn({ leaseMs: 1 }, newSession(), newPrompt())
    const before = bed.fleet.chunks()
    const connector = bed.connect({ orphanGraceMs: 60_000 })
    await eventually(async () => (await bed.ledger.unsettled(1)).length > 0)
    expect([await sweep(connector), await sweep(connector), await sweep(connector)]).toEqual([0, 0, 0])
    expect(bed.fleet.chunks()).toEqual(before)
  })

  test('keeps chunks of an artefact that a lost turn shares', async () => {
    const connector = bed.connect()
    const [session, prompt] = [newSession(), newPrompt()]
    const { kv } = await serveTurn(connector, { session, pod: bed.pods[0], prompt })
    const kept = bed.fleet.chunks()
    await dieInTurn({ leaseMs: 1 }, newSession(), `${prompt}${' This turn is lost.'.repeat(20)}`)
    expect(bed.fleet.chunks().length).toBeGreaterThan(kept.length)
    await eventually(async () => (await sweep(connector)) > 0)
    expect(bed.fleet.chunks().toSorted()).toEqual(kept.toSorted())
    const { presence } = await connector.attach(turnOf(session, bed.pods[1]), kv, { signal: anySignal() })
    expect(presence).toMatchObject({ kind: 'loaded', tokens: kv?.tokens })
  })

  test('a chunk that was swept can be held again', async () => {
    const connector = bed.connect()
    const prompt = newPrompt()
    await dieInTurn({ leaseMs: 1 }, newSession(), prompt)
    await eventually(async () => (await sweep(connector)) > 0)
    await bed.fleet.pods[0].engine.evict([...saltsOf(bed)][0] ?? '')
    const { offloaded } = await serveTurn(connector, { session: newSession(), pod: bed.pods[1], prompt })
    expect(offloaded.kind).toBe('stored')
  })

  test('removes chunks of a lost ledger, and none of other deployments', async () => {
    const other = await fleet.bed()
    const stranger = await serveTurn(other.connect(), {
      session: newSession(),
      pod: other.pods[0],
      prompt: newPrompt(),
    })
    const foreign = bed.fleet.chunks()
    await serveTurn(bed.connect(), { session: newSession(), pod: bed.pods[0], prompt: newPrompt() })
    bed.loseState()
    const connector = bed.connect()
    await eventually(async () => (await sweep(connector)) > 0)
    expect([stranger.offloaded.kind, bed.fleet.chunks()]).toEqual(['stored', foreign])
  })

  test('removes nothing while the store fails, and all of it afterwards', async () => {
    await dieInTurn({ leaseMs: 1 }, newSession(), newPrompt())
    const connector = bed.connect()
    bed.fleet.onCall(({ server }) => (server === 'coordinator' ? 'fail' : undefined))
    expect(await sweep(connector)).toBe(0)
    bed.fleet.onCall(() => undefined)
    await eventually(async () => (await sweep(connector)) > 0)
    expect(bed.fleet.chunks()).toEqual([])
  })
})

const wholeChunks = (prompt: string): number => Math.floor(prompt.length / 64) * 64

const saltsOf = (bed: LmcacheBed): ReadonlySet<string> =>
  new Set(bed.fleet.directory.entries().map(({ key }) => key.cache_salt))
