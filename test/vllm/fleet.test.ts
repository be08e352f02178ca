import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, jest, test } from '@jest/globals'
import { eventually } from '../support/eventually.ts'
import { orderServer } from './support/control.ts'
import { vllmFleet, vllmPod } from './support/fleet.ts'
import { completeOn, podMetric, resetPrefixCache, tokenize } from './support/pod.ts'
import { freshPrompt, freshSalt } from './support/prompts.ts'
import { directoryEntries, l1Chunks, l2Files, lookUp } from './support/store.ts'

jest.setTimeout(240_000)

/** A prompt that pod 0 has computed and whose whole chunks lie in the store. */
const storedPrompt = async (tokens: number) => {
  const prompt = freshPrompt(tokens)
  const salt = freshSalt()
  const first = await completeOn(vllmPod(0), { prompt, salt })
  const chunks = Math.floor(first.promptTokens / vllmFleet().chunkTokens)
  await eventually(async () => (await l2Files(salt)).length === chunks)
  return { prompt, salt, chunks, first }
}

describe('the fleet', () => {
  test('a prompt that one pod computed is in the store, and the other pod loads it', async () => {
    const { prompt, salt, chunks, first } = await storedPrompt(600)
    expect(first).toMatchObject({ cachedTokens: 0 })
    expect(chunks).toBeGreaterThanOrEqual(4)
    const external = await podMetric(vllmPod(1), 'vllm:external_prefix_cache_hits_total')

    const other = await completeOn(vllmPod(1), { prompt, salt })
    expect(other).toEqual({ ...first, cachedTokens: chunks * vllmFleet().chunkTokens })
    expect(await podMetric(vllmPod(1), 'vllm:external_prefix_cache_hits_total')).toBe(external + other.cachedTokens)
  })

  test('a pod with an emptied prefix cache loads from its LMCache server', async () => {
    const { prompt, salt, chunks } = await storedPrompt(300)
    const instance = vllmPod(0).lmcacheInstance
    await eventually(async () => (await l1Chunks(instance, salt)).length === chunks)
    await resetPrefixCache(vllmPod(0))
    const again = await completeOn(vllmPod(0), { prompt, salt })
    expect(again.cachedTokens).toBe(chunks * vllmFleet().chunkTokens)
  })

  test('the directory names the same chunks by token ids as by keys, and keeps no token ids', async () => {
    const { prompt, salt, chunks } = await storedPrompt(400)
    const tokenIds = await tokenize(vllmPod(0), prompt)
    const listed = await eventually(async () => {
      const entries = await directoryEntries(salt)
      return entries.length === chunks && entries.every(({ placements }) => placements.length >= 2) && entries
    })
    const byTokens = await lookUp({ tokenIds, salt })
    expect(byTokens.chunks).toBe(chunks)
    const byKeys = await lookUp({ keys: byTokens.results.map(({ key }) => key) })
    expect(byKeys.results).toEqual(byTokens.results)
    expect(new Set(byKeys.results.map(({ key }) => key.chunk_hash_hex))).toEqual(
      new Set(listed.map(({ key }) => key.chunk_hash_hex)),
    )
    expect(byKeys.results.map(({ token_ids }) => token_ids)).toEqual(Array.from({ length: chunks }, () => []))
  })

  test('without its LMCache server a pod still answers, and with a new one it stores again', async () => {
    await orderServer('lmcache-1', 'kill')
    // A prompt before the next heartbeat, every 10 s, waits for the server for minutes.
    const log = join(vllmFleet().logFolder, 'vllm-1.log')
    await eventually(async () => (await readFile(log, 'utf8')).includes('entering degraded mode'))
    const prompt = freshPrompt(300)
    expect(await completeOn(vllmPod(1), { prompt, salt: freshSalt() })).toMatchObject({ cachedTokens: 0 })
    await orderServer('lmcache-1', 'restart')
    await eventually(
      async () => {
        const salt = freshSalt()
        await completeOn(vllmPod(1), { prompt, salt })
        return (await l2Files(salt)).length > 0
      },
      { timeoutMs: 90_000 },
    )
  })
})
