import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createBlockCache } from '../../../../playground/replay/block-cache.ts'

const used = (maxBlocks: number, ...lists: readonly (readonly number[])[]) => {
  const cache = createBlockCache({ maxBlocks })
  for (const blocks of lists) cache.use(blocks, blocks.length)
  return cache
}

describe('a cache of blocks', () => {
  test('holds what was used, up to the first gap', () => {
    const cache = used(10, [1, 2], [4])
    expect(cache.heldPrefix([1, 2, 3, 4])).toBe(2)
    expect(cache.heldPrefix([3, 4])).toBe(0)
    expect(cache.heldPrefix([1, 2])).toBe(2)
  })

  test('takes in only as many as it is told', () => {
    const cache = createBlockCache({ maxBlocks: 10 })
    cache.use([1, 2, 3], 2)
    expect(cache.heldPrefix([1, 2, 3])).toBe(2)
  })

  test('may have no room at all, or room without end', () => {
    expect(used(0, [1, 2]).heldPrefix([1, 2])).toBe(0)
    expect(used(Number.POSITIVE_INFINITY, [1, 2], [3]).heldPrefix([1, 2, 3])).toBe(3)
  })

  test('holds the blocks that were used last, as many as there is room for', () => {
    const lists = fc.array(fc.array(fc.nat({ max: 12 }), { maxLength: 6 }), { maxLength: 20 })
    fc.assert(
      fc.property(lists, fc.nat({ max: 8 }), (given, maxBlocks) => {
        const latestFirst = [...new Set(given.flat().reverse())].slice(0, maxBlocks)
        const cache = used(maxBlocks, ...given)
        const held = Array.from({ length: 13 }, (_none, block) => block).filter(
          (block) => cache.heldPrefix([block]) === 1,
        )
        expect(held).toEqual([...latestFirst].sort((a, b) => a - b))
      }),
    )
  })
})
