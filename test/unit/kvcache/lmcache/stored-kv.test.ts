import { describe, expect, test } from '@jest/globals'
import { anySignal, finishTurn, removeSession, turnOf } from '../../../contract/kvcache/kv-test-bed.ts'
import { startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { useKvBed } from '../../../contract/kvcache/use-kv-bed.ts'

// The contract leaves to each connector what of a turn is stored, and where it says that it lies.
describe('a turn on a simulated fleet', () => {
  const kit = useKvBed(() => startLmcacheBed())
  const { serve, prepare } = kit

  test('whole chunks of the prompt are stored, also below kv.minTokens', async () => {
    const { stored, usage } = await serve(kit.first)
    expect(stored?.tokens).toBe(Math.floor(usage.promptTokens / kit.bed.fleet.chunkTokens) * kit.bed.fleet.chunkTokens)
  })

  test('a conversation shorter than a chunk is not stored', async () => {
    expect((await serve(kit.first, undefined, 'Hi')).finished).toEqual({ kind: 'none', reason: 'too_short' })
    expect(await kit.bed.artefacts()).toEqual([])
  })

  test('a turn is stored while the first LMCache server of the fleet does not answer', async () => {
    kit.bed.fleet.onCall(({ server, path }) => (server === 'instance-0' && path === '/status' ? 'fail' : undefined))
    expect((await serve(kit.second)).finished.kind).toBe('stored')
  })

  test('a longer turn leaves a new artefact', async () => {
    const { stored } = await serve(kit.first)
    const { finished } = await serve(kit.first, stored, `${kit.prompt}${kit.bed.more}`)
    expect(finished.kind).toBe('stored')
  })

  test('20 concurrent turns find the KV in the engine', async () => {
    const { stored } = await serve(kit.first)
    const prepared = await Promise.all(Array.from({ length: 20 }, () => prepare(kit.first, stored)))
    const hit = { kind: 'hit', tier: 'gpu', tokens: stored?.tokens }
    expect(prepared.map(({ presence }) => presence)).toEqual(prepared.map(() => hit))
  })

  test('a turn that another pod served is stored from there', async () => {
    const turn = turnOf(kit.session, kit.first)
    const { fields, claim } = await kit.cache.prepare(turn, { signal: anySignal() })
    const usage = await kit.second.run({ prompt: kit.prompt, fields })
    const finished = await finishTurn(kit.cache, { ...turn, pod: kit.second.address }, { claim, usage })
    expect(finished.kind).toBe('stored')
  })

  test('a removal does not wait for a running turn', async () => {
    const { stored } = await serve(kit.first)
    await prepare(kit.first, stored)
    expect(await removeSession(kit.cache, kit.session, stored)).toEqual({ kind: 'removed' })
  })
})
