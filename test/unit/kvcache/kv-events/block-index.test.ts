import { describe, expect, test } from '@jest/globals'
import { type BlockIndex, createBlockIndex } from '../../../../src/kvcache/kv-events/block-index.ts'
import type { ChainPosition, KvBlockEvent } from '../../../../src/kvcache/kv-events/kv-block-event.ts'

const root = (salt: string): ChainPosition => ({ kind: 'root', salt, lora: undefined })
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
const resident = (index: BlockIndex, tokens: readonly number[]): number =>
  index.residentTokens({ salt: 's', tokens: Uint32Array.from(tokens) })
const turn = (index: BlockIndex, turnId: string): readonly number[] | undefined => {
  const tokens = index.turnTokens(turnId)
  return tokens === undefined ? undefined : [...tokens]
}

const roomy = { maxBlocks: 1_000 }
const chain = stored(root('s'), 't1', { a: [1, 2], b: [3, 4], c: [5, 6] })

/** Every sequence of stores, removals and clears: test/fuzz/kvcache/kv-events-index.test.ts. */
describe('tokens that the index finds in a pod', () => {
  test.each<{
    readonly name: string
    readonly events: readonly KvBlockEvent[]
    readonly tokens: readonly number[]
    readonly expected: number
  }>([
    { name: 'none before any event', events: [], tokens: [1, 2], expected: 0 },
    { name: 'those of a whole chain', events: [chain], tokens: [1, 2, 3, 4, 5, 6], expected: 6 },
    { name: 'those of whole blocks', events: [chain], tokens: [1, 2, 3, 4, 5], expected: 4 },
    {
      name: 'those of a branch',
      events: [chain, stored(behind('a'), 't2', { d: [7, 8] })],
      tokens: [1, 2, 7, 8],
      expected: 4,
    },
    {
      name: 'those of blocks of different lengths',
      events: [chain, stored(behind('a'), 't2', { d: [3, 4, 5] })],
      tokens: [1, 2, 3, 4, 5],
      expected: 5,
    },
    { name: 'those before a removed block', events: [chain, removed('b')], tokens: [1, 2, 3, 4, 5, 6], expected: 2 },
    {
      name: 'unchanged by the removal of an unknown block',
      events: [chain, removed('zz')],
      tokens: [1, 2],
      expected: 2,
    },
    {
      name: 'none behind a cleared block',
      events: [chain, { kind: 'cleared' }, stored(behind('a'), 't', { b: [3, 4] })],
      tokens: [1, 2, 3, 4],
      expected: 0,
    },
    {
      name: 'none behind an unknown block',
      events: [stored(behind('zz'), 't', { b: [3, 4] })],
      tokens: [3, 4],
      expected: 0,
    },
    {
      name: 'none of a block whose hash has other tokens',
      events: [chain, stored(root('s'), 't2', { b: [8, 8] })],
      tokens: [8, 8],
      expected: 0,
    },
    {
      name: 'none of a removed block whose hash comes back with other tokens',
      events: [chain, removed('b'), stored(behind('a'), 't2', { b: [8, 8] })],
      tokens: [1, 2, 3, 4],
      expected: 2,
    },
  ])('are $name', ({ events, tokens, expected }) => {
    expect(resident(filled(roomy, ...events), tokens)).toBe(expected)
  })
})

describe('tokens of a turn', () => {
  test.each<{
    readonly name: string
    readonly events: readonly KvBlockEvent[]
    readonly expected: readonly number[] | undefined
  }>([
    { name: 'none before any event', events: [chain], expected: undefined },
    {
      name: 'those from the root on',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] })],
      expected: [1, 2, 3, 4, 5, 6, 7, 8],
    },
    {
      name: 'kept when the blocks are gone',
      events: [chain, stored(behind('c'), 't2', { d: [7, 8] }), removed('a', 'b', 'c', 'd'), { kind: 'cleared' }],
      expected: [1, 2, 3, 4, 5, 6, 7, 8],
    },
    {
      name: 'none where its chain is unknown',
      events: [stored(behind('zz'), 't2', { d: [7, 8] })],
      expected: undefined,
    },
  ])('are $name', ({ events, expected }) => {
    const index = filled(roomy, ...events)
    expect(turn(index, 't2')).toEqual(expected)
    expect(index.turnLength('t2')).toBe(expected?.length ?? 0)
  })

  test('are forgotten with everything else', () => {
    const index = filled(roomy, chain)
    index.forget()
    expect(turn(index, 't1')).toBeUndefined()
    expect(resident(index, [1, 2])).toBe(0)
    expect(index.size).toBe(0)
  })
})

describe('a bounded index', () => {
  test('drops the oldest ends of chains, and finds no dropped block', () => {
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

  test('drops one chain before the next, so that the latest chain can grow', () => {
    const [first, last] = [
      stored(root('s'), 't1', { a: [1, 2], b: [3, 4], c: [5, 6], d: [7, 8] }),
      stored(root('s'), 't2', { v: [11, 12], w: [13, 14], x: [15, 16], y: [17, 18] }),
    ]
    const index = filled({ maxBlocks: 5 }, first, last, stored(behind('y'), 't3', { z: [19, 20] }))
    expect(resident(index, [1, 2, 3, 4, 5, 6, 7, 8])).toBe(0)
    expect(resident(index, [11, 12, 13, 14, 15, 16, 17, 18, 19, 20])).toBe(10)
    expect(turn(index, 't3')).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
  })

  test('keeps the beginning of a chain that was reported again', () => {
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

  test('drops blocks first that the engine has removed', () => {
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

  test('keeps the tokens of a turn whose blocks it dropped', () => {
    const index = filled({ maxBlocks: 1 }, chain)
    expect(index.size).toBe(1)
    expect(turn(index, 't1')).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('counts removed blocks from a clear on', () => {
    const index = createBlockIndex({ maxBlocks: 8 })
    for (let round = 0; round < 3; round += 1) {
      index.apply({ kind: 'cleared' })
      index.apply(chain)
      index.apply(removed('c'))
    }
    expect(index.size).toBe(3)
  })

  test('keeps few removed blocks', () => {
    const index = createBlockIndex({ maxBlocks: 80 })
    for (let at = 0; at < 50; at += 1) {
      index.apply(stored(root('s'), undefined, { [`h${at}`]: [at, at] }))
      index.apply(removed(`h${at}`))
    }
    expect(index.size).toBe(10)
  })
})
