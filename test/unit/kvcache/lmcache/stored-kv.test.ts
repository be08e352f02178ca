import { describe, expect, test } from '@jest/globals'
import { sweep } from '../../../contract/kvcache/kv-test-bed.ts'
import { startLmcacheBed } from '../../../contract/kvcache/lmcache-bed.ts'
import { useKvBed } from '../../../contract/kvcache/use-kv-bed.ts'

// The contract leaves to each connector what of a turn is stored, and where it says that it lies.
describe('a turn on a simulated fleet', () => {
  const kit = useKvBed(() => startLmcacheBed())
  const { serve } = kit

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

  test('a sweep asks LMCache nothing', async () => {
    await serve(kit.first)
    const before = kit.bed.fleet.calls.length
    await sweep(kit.cache, [])
    expect(kit.bed.fleet.calls.slice(before)).toEqual([])
  })
})
