import { describe, expect, test } from '@jest/globals'
import { type BlockIndex, createBlockIndex } from '../../../../src/kvcache/kv-events/block-index.ts'
import type { ChainPosition, KvBlockEvent } from '../../../../src/kvcache/kv-events/kv-block-event.ts'

const root = (salt: string, lora?: string): ChainPosition => ({ kind: 'root', salt, lora })
const behind = (hash: string): ChainPosition => ({ kind: 'block', hash })
const stored = (
  after: ChainPosition,
  turnId: string | undefined,
  blocks: Readonly<Record<string, readonly number[]>>,
): KvBlockEvent => ({
  kind: 'stored',
  after,
  turnId,
  blocks: Object.entries(blocks).map(([hash, tokens]) => ({ hash, tokens: Uint32Array.from(tokens) })),
})
const removed = (...hashes: readonly string[]): KvBlockEvent => ({ kind: 'removed', hashes })

const filled = (options: { readonly maxBlocks: number }, ...events: readonly KvBlockEvent[]): BlockIndex => {
  const index = createBlockIndex(options)
  for (const event of events) index.apply(event)
  return index
}
const resident = (index: BlockIndex, tokens: readonly number[], salt = 's', lora?: string): number =>
  index.residentTokens({ salt, tokens: Uint32Array.from(tokens), lora })
const turn = (index: BlockIndex, turnId: string): readonly number[] | undefined => {
  const tokens = index.turnTokens(turnId)
  return tokens === undefined ? undefined : [...tokens]
}

const roomy = { maxBlocks: 1_000 }
const chain = stored(root('s'), 't1', { a: [1, 2], b: [3, 4], c: [5, 6] })

describe('what a pod holds', () => {
  test.each<{
    readonly name: string
    readonly events: readonly KvBlockEvent[]
    readonly tokens: readonly number[]
    readonly salt?: string
    readonly lora?: string
    readonly expected: number
  }>([
    { name: 'nothing, before anything was told', events: [], tokens: [1, 2], expected: 0 },
    { name: 'a whole chain', events: [chain], tokens: [1, 2, 3, 4, 5, 6], expected: 6 },
    { name: 'whole blocks only', events: [chain], tokens: [1, 2, 3, 4, 5], expected: 4 },
    { name: 'no more than the chain', events: [chain], tokens: [1, 2, 3, 4, 5, 6, 7, 8], expected: 6 },
    { name: 'only as far as the tokens agree', events: [chain], tokens: [1, 2, 3, 9, 5, 6], expected: 2 },
    { name: 'nothing under another salt', events: [chain], tokens: [1, 2], salt: 'z', expected: 0 },
    { name: 'nothing for an adapter', events: [chain], tokens: [1, 2], lora: 'l', expected: 0 },
    {
      name: 'the adapter’s own blocks',
      events: [stored(root('s', 'l'), 't', { x: [1, 2] })],
      tokens: [1, 2],
      lora: 'l',
      expected: 2,
    },
    {
      name: 'what was added to a chain',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] })],
      tokens: [1, 2, 3, 4, 5, 6, 7, 8],
      expected: 8,
    },
    {
      name: 'a branch of a chain',
      events: [chain, stored(behind('a'), 't2', { d: [7, 8] })],
      tokens: [1, 2, 7, 8],
      expected: 4,
    },
    {
      name: 'blocks of different lengths',
      events: [chain, stored(behind('a'), 't2', { d: [3, 4, 5] })],
      tokens: [1, 2, 3, 4, 5],
      expected: 5,
    },
    { name: 'nothing behind a removed block', events: [chain, removed('b')], tokens: [1, 2, 3, 4, 5, 6], expected: 2 },
    {
      name: 'all of it when the removed block is back',
      events: [chain, removed('b'), stored(behind('a'), 't2', { b: [3, 4] })],
      tokens: [1, 2, 3, 4, 5, 6],
      expected: 6,
    },
    {
      name: 'everything when an unknown block is removed',
      events: [chain, removed('zz')],
      tokens: [1, 2],
      expected: 2,
    },
    { name: 'nothing after a clear', events: [chain, { kind: 'cleared' }], tokens: [1, 2], expected: 0 },
    {
      name: 'nothing behind a block that a clear took',
      events: [chain, { kind: 'cleared' }, stored(behind('a'), 't', { b: [3, 4] })],
      tokens: [1, 2, 3, 4],
      expected: 0,
    },
    {
      name: 'nothing behind an unknown block',
      events: [stored(behind('zz'), 't', { b: [3, 4] })],
      tokens: [3, 4],
      expected: 0,
    },
    {
      name: 'nothing of a block whose name means something else',
      events: [chain, stored(root('s'), 't2', { b: [8, 8] })],
      tokens: [8, 8],
      expected: 0,
    },
    {
      name: 'nothing more of a removed block whose name means something else',
      events: [chain, removed('b'), stored(behind('a'), 't2', { b: [8, 8] })],
      tokens: [1, 2, 3, 4],
      expected: 2,
    },
  ])('is $name', ({ events, tokens, salt, lora, expected }) => {
    expect(resident(filled(roomy, ...events), tokens, salt, lora)).toBe(expected)
  })
})

describe('what a turn left', () => {
  test.each<{
    readonly name: string
    readonly events: readonly KvBlockEvent[]
    readonly expected: readonly number[] | undefined
  }>([
    { name: 'nothing, before anything was told', events: [chain], expected: undefined },
    {
      name: 'its chain from the root',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] })],
      expected: [1, 2, 3, 4, 5, 6, 7, 8],
    },
    {
      name: 'what it reused',
      events: [chain, stored(root('s'), 't2', { a: [1, 2], b: [3, 4] })],
      expected: [1, 2, 3, 4],
    },
    {
      name: 'the longest of several chains',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] }), stored(root('s'), 't2', { a: [1, 2] })],
      expected: [1, 2, 3, 4, 5, 6, 7, 8],
    },
    {
      name: 'its chain, also when the blocks are gone',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] }), removed('a', 'b', 'c', 'd'), { kind: 'cleared' }],
      expected: [1, 2, 3, 4, 5, 6, 7, 8],
    },
    {
      name: 'nothing where its chain is unknown',
      events: [stored(behind('zz'), 't2', { d: [7, 8] })],
      expected: undefined,
    },
  ])('is $name', ({ events, expected }) => {
    const index = filled(roomy, ...events)
    expect(turn(index, 't2')).toEqual(expected)
    expect(index.turnLength('t2')).toBe(expected?.length ?? 0)
  })

  test('is forgotten with everything else', () => {
    const index = filled(roomy, chain)
    index.forget()
    expect(turn(index, 't1')).toBeUndefined()
    expect(resident(index, [1, 2])).toBe(0)
    expect(index.size).toBe(0)
  })
})

describe('a bounded index', () => {
  test('forgets the ends told of longest ago, and never claims what it forgot', () => {
    const index = filled(
      { maxBlocks: 4 },
      chain,
      stored(root('s'), 't2', { x: [11, 12] }),
      stored(root('s'), 't3', { y: [21, 22] }),
    )
    expect(index.size).toBe(4)
    expect(resident(index, [1, 2, 3, 4, 5, 6])).toBe(4)
    expect(resident(index, [11, 12])).toBe(2)
    expect(resident(index, [21, 22])).toBe(2)
  })

  test('forgets one chain before it begins with the next, so that the last one told of can go on', () => {
    const [first, last] = [
      stored(root('s'), 't1', { a: [1, 2], b: [3, 4], c: [5, 6], d: [7, 8] }),
      stored(root('s'), 't2', { v: [11, 12], w: [13, 14], x: [15, 16], y: [17, 18] }),
    ]
    const index = filled({ maxBlocks: 5 }, first, last, stored(behind('y'), 't3', { z: [19, 20] }))
    expect(resident(index, [1, 2, 3, 4, 5, 6, 7, 8])).toBe(0)
    expect(resident(index, [11, 12, 13, 14, 15, 16, 17, 18, 19, 20])).toBe(10)
    expect(turn(index, 't3')).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
  })

  test('keeps the beginning of a chain that was told of again', () => {
    const index = filled(
      { maxBlocks: 6 },
      stored(root('s'), 't1', { a: [1, 2], b: [3, 4], c: [5, 6], d: [7, 8] }),
      stored(root('s'), 't2', { v: [11, 12] }),
      stored(root('s'), 't3', { a: [1, 2], b: [3, 4] }),
      stored(root('s'), 't4', { w: [21, 22], x: [23, 24], y: [25, 26] }),
    )
    expect(resident(index, [1, 2, 3, 4, 5, 6])).toBe(4)
    expect(resident(index, [11, 12])).toBe(2)
  })

  test('forgets blocks that the engine dropped first', () => {
    const index = filled(
      { maxBlocks: 4 },
      stored(root('s'), 't1', { a: [1, 2] }),
      stored(root('s'), 't2', { x: [11, 12], z: [13, 14] }),
      removed('z'),
      stored(root('s'), 't3', { y: [21, 22], w: [23, 24] }),
    )
    expect(resident(index, [1, 2])).toBe(2)
    expect(resident(index, [21, 22, 23, 24])).toBe(4)
    expect(index.size).toBe(4)
  })

  test('keeps the tokens of a turn whose blocks it forgot', () => {
    const index = filled({ maxBlocks: 1 }, chain)
    expect(index.size).toBe(1)
    expect(turn(index, 't1')).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('counts what the engine dropped from a clear on', () => {
    const index = createBlockIndex({ maxBlocks: 8 })
    for (let round = 0; round < 3; round += 1) {
      index.apply({ kind: 'cleared' })
      index.apply(chain)
      index.apply(removed('c'))
    }
    expect(index.size).toBe(3)
  })

  test('keeps few blocks that the engine dropped', () => {
    const index = createBlockIndex({ maxBlocks: 80 })
    for (let at = 0; at < 50; at += 1) {
      index.apply(stored(root('s'), undefined, { [`h${at}`]: [at, at] }))
      index.apply(removed(`h${at}`))
    }
    expect(index.size).toBe(10)
  })
})
