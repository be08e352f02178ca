import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { atMostEntries } from '../async/at-most-entries.ts'
import type { PodAddress } from './pod.ts'

/** Most bytes of a body that are looked at. */
export const maxPrefixBytes = 32_768

/** Some 250 tokens: fewer are not worth a queue. */
const blockBytes = 1024
const maxPodsPerBlock = 4

/** Which pods computed the beginning of a body lately, and so probably hold its KV. The last used `maxBlocks` stay. */
export const createPrefixIndex = (options: { readonly maxBlocks: number }) => {
  const podsOf = new LRUCache<string, readonly PodAddress[]>(atMostEntries(options.maxBlocks))
  return {
    /** The blocks of a body's beginning; `model` is a part of their identity. */
    blocksOf: (model: string, prefix: Buffer): readonly string[] => {
      const blocks: string[] = []
      const hash = createHash('sha256').update(`${model}\0`)
      // Each block stands for all bytes up to its end. What is left behind the last whole block is not counted.
      for (let end = blockBytes; end <= Math.min(prefix.length, maxPrefixBytes); end += blockBytes) {
        hash.update(prefix.subarray(end - blockBytes, end))
        blocks.push(hash.copy().digest('base64url'))
      }
      return blocks
    },
    /** Bytes of the beginning that each pod has seen. A pod that is not listed has seen none of it. */
    seen: (blocks: readonly string[]): ReadonlyMap<PodAddress, number> => {
      const bytes = new Map<PodAddress, number>()
      for (const [index, block] of blocks.entries())
        for (const pod of podsOf.get(block) ?? []) bytes.set(pod, (index + 1) * blockBytes)
      return bytes
    },
    /** The pod computes these blocks. */
    add: (blocks: readonly string[], pod: PodAddress): void => {
      for (const block of blocks) {
        const others = (podsOf.get(block) ?? []).filter((known) => known !== pod)
        podsOf.set(block, [pod, ...others].slice(0, maxPodsPerBlock))
      }
    },
  }
}
