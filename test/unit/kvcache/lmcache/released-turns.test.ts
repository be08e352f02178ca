import { afterEach, describe, expect, test } from '@jest/globals'
import { anySignal, newPrompt, newSession, serveTurn, turnOf } from '../../../contract/kvcache/kv-test-bed.ts'
import { type LmcacheBed, type LmcacheBedOptions, startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import type { KvConnector } from '../../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../../support/eventually.ts'

describe('a turn that failed', () => {
  let bed: LmcacheBed
  let connector: KvConnector
  afterEach(() => bed.close())

  const start = async (options: LmcacheBedOptions = {}): Promise<void> => {
    bed = await startLmcacheBed(options)
    connector = bed.connect()
  }
  /** Resolves when the turn has run, and its KV lies in the store. */
  const runTurn = async (prompt: string) => {
    const turn = turnOf(newSession(), bed.pods[0])
    const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
    await bed.pods[0].run({ prompt, fields })
    await eventually(async () => (await bed.pods[0].probe(prompt)) === Math.floor(prompt.length / 64) * 64)
    await bed.fleet.directory.arrived()
    return { turn, claim }
  }

  test.each<LmcacheBedOptions>([
    { isolation: 'tenant' },
    { isolation: 'session' },
    { isolation: 'tenant', events: false },
  ])('leaves nothing: %j', async (options) => {
    await start(options)
    const { turn, claim } = await runTurn(newPrompt())
    expect(bed.fleet.chunks()).not.toEqual([])
    await connector.detach(turn, claim, anySignal())
    expect([bed.fleet.chunks(), bed.ledger.size, bed.fleet.coordinator.quotas()]).toEqual([[], 0, []])
  })

  test('leaves the chunks that artefacts of its tenant share', async () => {
    await start()
    const [session, prompt] = [newSession(), newPrompt()]
    const { kv } = await serveTurn(connector, { session, pod: bed.pods[0], prompt })
    const kept = bed.fleet.chunks()
    const { turn, claim } = await runTurn(`${prompt}${' This turn fails.'.repeat(20)}`)
    expect(bed.fleet.chunks().length).toBeGreaterThan(kept.length)
    await connector.detach(turn, claim, anySignal())
    expect(bed.fleet.chunks().toSorted()).toEqual(kept.toSorted())
    const { presence } = await connector.attach(turnOf(session, bed.pods[1]), kv, { signal: anySignal() })
    expect(presence).toEqual({ kind: 'on-demand', tokens: kv?.tokens })
  })

  test('is not released while the store fails, which its host logs', async () => {
    await start()
    const { turn, claim } = await runTurn(newPrompt())
    bed.fleet.onCall(({ server }) => (server === 'coordinator' ? 'fail' : undefined))
    await expect(connector.detach(turn, claim, anySignal())).rejects.toThrow(
      'POST /directory/lookup was answered with 500',
    )
  })
})

test.each([1, 40])('a sweep asks LMCache nothing, with the KV of %d sessions', async (sessions) => {
  const bed = await startLmcacheBed()
  try {
    const connector = bed.connect()
    for (let made = 0; made < sessions; made += 1) {
      await serveTurn(connector, { session: newSession(), pod: bed.pods[0], prompt: newPrompt() })
    }
    const before = bed.fleet.calls.length
    expect(await connector.reconcile(async () => new Set(), anySignal())).toBe(0)
    expect(bed.fleet.calls.slice(before)).toEqual([])
  } finally {
    await bed.close()
  }
})
