import { afterEach, describe, expect, jest, test } from '@jest/globals'
import type { KvLog } from '../../../../src/kvcache/connector-definition.ts'
import type { KvCache } from '../../../../src/kvcache/kv-cache.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  releaseTurn,
  serveTurn,
  turnOf,
} from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheBedOptions, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { eventually } from '../../../support/eventually.ts'

describe('a turn that failed', () => {
  let bed: LmcacheBed
  let cache: KvCache
  afterEach(() => bed.close())

  const start = async (options: LmcacheBedOptions = {}): Promise<void> => {
    bed = await startLmcacheBed(options)
    cache = bed.connect()
  }
  /** Resolves when the turn has run, and its KV lies in the store. */
  const runTurn = async (prompt: string) => {
    const turn = turnOf(newSession(), bed.pods[0])
    const prepared = await cache.prepare(turn, { signal: anySignal() })
    await bed.pods[0].run({ prompt, fields: prepared.fields })
    await eventually(async () => (await bed.pods[0].probe(prompt)) === Math.floor(prompt.length / 64) * 64)
    await bed.fleet.directory.arrived()
    return { turn, prepared }
  }

  test.each(['tenant', 'session'] as const)('leaves nothing, isolation by %s', async (isolation) => {
    await start({ isolation })
    const { turn, prepared } = await runTurn(newPrompt())
    expect(bed.fleet.chunks()).not.toEqual([])
    await releaseTurn(cache, turn, prepared)
    expect([bed.fleet.chunks(), bed.ledger.size]).toEqual([[], 0])
  })

  test('leaves the chunks that artefacts of its tenant share', async () => {
    await start()
    const [session, prompt] = [newSession(), newPrompt()]
    const { stored } = await serveTurn(cache, { session, pod: bed.pods[0], prompt })
    const kept = bed.fleet.chunks()
    const { turn, prepared } = await runTurn(`${prompt}${' This turn fails.'.repeat(20)}`)
    expect(bed.fleet.chunks().length).toBeGreaterThan(kept.length)
    await releaseTurn(cache, turn, prepared)
    expect(bed.fleet.chunks().toSorted()).toEqual(kept.toSorted())
    const { presence } = await cache.prepare(turnOf(session, bed.pods[1], { stored }), { signal: anySignal() })
    expect(presence).toEqual({ kind: 'hit', tier: 'store', tokens: stored?.tokens })
  })

  test('is not released while the store fails, which its host logs', async () => {
    bed = await startLmcacheBed()
    const warn = jest.fn<KvLog['warn']>()
    cache = bed.connect({ log: { debug: () => {}, info: () => {}, warn } })
    const { turn, prepared } = await runTurn(newPrompt())
    bed.fleet.onCall(({ server }) => (server === 'coordinator' ? 'fail' : undefined))
    await releaseTurn(cache, turn, prepared)
    const err = expect.objectContaining({ message: 'POST /directory/lookup was answered with 500' })
    expect(warn).toHaveBeenCalledWith(expect.any(String), { pod: turn.pod, err })
  })
})
