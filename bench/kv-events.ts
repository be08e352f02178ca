/** `make bench-kv-events`: what a turn's report of KV blocks costs the gateway, in time and memory. */

import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import { decodeEvents } from '../src/kvcache/kv-events/decode-events.ts'
import { createTurnChains } from '../src/kvcache/kv-events/turn-chains.ts'
import { allSlices } from '../test/support/all-slices.ts'
import { storedEvent } from '../test/support/kv-event-messages.ts'
import { say } from './bench-process.ts'
import { median } from './statistics.ts'

const mebibyte = 1024 * 1024
const rounds = 300
const chainBytes = 20 * mebibyte

/** A hash of 64 bits that no other block has. */
const hashOf = (turn: number, block: number): bigint => 2n ** 63n + BigInt(turn) * 1_000_003n + BigInt(block)

const hashesOf = (turn: number, blocks: number): readonly bigint[] =>
  Array.from({ length: blocks }, (_, block) => hashOf(turn, block))

const medianMs = (run: (round: number) => void): number =>
  median(
    Array.from({ length: rounds }, (_, round) => {
      const startedMs = performance.now()
      run(round)
      return performance.now() - startedMs
    }),
  )

for (const blockTokens of [16, 128]) {
  const blocks = 32_768 / blockTokens
  const tokens = Array.from({ length: 32_768 }, (_, at) => (at * 7_919) % 128_000)
  const event = storedEvent({ hashes: hashesOf(0, blocks), tokens, salt: '0'.repeat(32), turnId: 'turn' })
  const batch = Buffer.from(encode([1.5, [event], 0], { useBigInt64: true }))
  const [reported] = allSlices(decodeEvents(batch)) ?? []
  if (reported?.kind !== 'reported') throw new Error('the report was not read')
  const chains = createTurnChains(chainBytes)
  const decodeMs = medianMs(() => allSlices(decodeEvents(batch)))
  const keepMs = medianMs((round) => chains.apply({ ...reported, turnId: `${round}` }))
  const dropMs = medianMs(() => hash('sha256', batch))
  const timings = `decode ${decodeMs.toFixed(2)} ms, keep ${keepMs.toFixed(2)} ms, drop a repeat ${dropMs.toFixed(3)} ms`
  say(`32,768 tokens in blocks of ${blockTokens}: ${batch.length} bytes, ${timings}`)
}

const usedBytes = async (): Promise<number> => {
  // Memory of typed arrays is freed after the collection that finds them.
  for (let collections = 0; collections < 3; collections += 1) {
    globalThis.gc?.()
    await setImmediate()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Reports far more than may be kept. Its own function, so that nothing of it is in memory afterwards. */
const measureMemory = async (blocks: number, blockTokens: number): Promise<void> => {
  const emptyBytes = await usedBytes()
  const chains = createTurnChains(chainBytes)
  const turns = Math.ceil((10 * chainBytes) / (1_024 + blocks * (128 + 4 * blockTokens)))
  for (let turn = 0; turn < turns; turn += 1) {
    const hashes = hashesOf(turn, blocks)
    const tokens = new Uint32Array(blocks * blockTokens)
    chains.apply({ kind: 'reported', turnId: `${turn}`, after: undefined, hashes, tokens, blockTokens })
  }
  const inUse = ((await usedBytes()) - emptyBytes) / mebibyte
  const accounted = (chains.bytes / mebibyte).toFixed(1)
  say(`${turns} turns of ${blocks} × ${blockTokens} tokens: ${accounted} MiB accounted, ${inUse.toFixed(1)} in use`)
}

for (const [blocks, blockTokens] of [
  [1, 16],
  [2_048, 16],
  [256, 128],
  [5_000, 1],
  [1, 60_000],
] as const) {
  await measureMemory(blocks, blockTokens)
}
