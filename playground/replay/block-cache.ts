import { LRUCache } from 'lru-cache'

/**
 * A cache of blocks that evicts the least recently used block. `maxBlocks` may be 0, which holds nothing, or infinite.
 */
export const createBlockCache = (options: { readonly maxBlocks: number }) => {
  const table = new LRUCache<number, true>({ maxSize: Number.MAX_SAFE_INTEGER, sizeCalculation: () => 1 })
  return {
    /** How many blocks from the first on are there without a gap. Not a use. */
    heldPrefix: (blocks: readonly number[]): number => {
      let held = 0
      while (held < blocks.length && table.has(blocks[held] ?? -1)) held += 1
      return held
    },
    /** Uses the first `count` blocks, of which those that are not there are taken in. */
    use: (blocks: readonly number[], count: number): void => {
      for (const block of count === blocks.length ? blocks : blocks.slice(0, count)) {
        table.set(block, true)
        if (table.size > options.maxBlocks) table.pop()
      }
    },
  }
}
