import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createBlockIndex } from '../../../src/kvcache/kv-events/block-index.ts'
import type { KvBlockEvent } from '../../../src/kvcache/kv-events/kv-block-event.ts'

/** A prefix cache as an engine has it: blocks of two tokens, known by everything up to and with them. */
interface Chain {
  readonly salt: string
  readonly lora: string | undefined
  /** One letter per block. */
  readonly path: string
}
const blockName = (chain: Chain, blocks: number): string =>
  `${chain.salt}/${chain.lora ?? ''}/${chain.path.slice(0, blocks)}`
const tokensOf = (path: string): readonly number[] => Array.from(path).flatMap((letter) => [letter.charCodeAt(0), 7])
const blocksOf = (chain: Chain): readonly string[] => Array.from(chain.path).map((_, at) => blockName(chain, at + 1))

type Step =
  | { readonly kind: 'compute'; readonly chain: Chain; readonly turnId: string; readonly report: 'new' | 'all' }
  | { readonly kind: 'evict'; readonly chain: Chain }
  | { readonly kind: 'clear' }
  /** Events were missed for good: what was evicted meanwhile is not told. */
  | { readonly kind: 'gap'; readonly evicted: readonly Chain[] }

const chains: fc.Arbitrary<Chain> = fc.record({
  salt: fc.constantFrom('s', 't'),
  lora: fc.constantFrom(undefined, undefined, 'l'),
  path: fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 6 }),
})
const told: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('compute' as const),
      chain: chains,
      turnId: fc.constantFrom('t1', 't2', 't3', 't4'),
      report: fc.constantFrom('new' as const, 'all' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('evict' as const), chain: chains }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'clear' as const }) },
)
const gap: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('gap' as const),
  evicted: fc.array(chains, { maxLength: 3 }),
})

/** What the engine does, and what it says of it. */
const compute = (held: Set<string>, step: Extract<Step, { kind: 'compute' }>): readonly KvBlockEvent[] => {
  const { chain, turnId, report } = step
  const names = blocksOf(chain)
  const reused = names.findIndex((name) => !held.has(name))
  const start = report === 'all' ? 0 : reused === -1 ? names.length : reused
  for (const name of names) held.add(name)
  const blocks = names.slice(start).map((hash, at) => ({
    hash,
    tokens: Uint32Array.from(tokensOf(chain.path.slice(start + at, start + at + 1))),
  }))
  if (blocks.length === 0) return []
  const parent = names[start - 1]
  const after =
    parent === undefined
      ? ({ kind: 'root', salt: chain.salt, lora: chain.lora } as const)
      : ({ kind: 'block', hash: parent } as const)
  return [{ kind: 'stored', after, blocks, turnId }]
}

interface Play {
  readonly index: ReturnType<typeof createBlockIndex>
  readonly held: ReadonlySet<string>
  /** The longest chain told of each turn since the last gap. */
  readonly turns: ReadonlyMap<string, string>
}

const play = (steps: readonly Step[], maxBlocks: number): Play => {
  const index = createBlockIndex({ maxBlocks })
  const held = new Set<string>()
  const turns = new Map<string, string>()
  for (const step of steps) {
    switch (step.kind) {
      case 'compute': {
        const events = compute(held, step)
        for (const event of events) index.apply(event)
        const known = turns.get(step.turnId) ?? ''
        if (events.length > 0 && step.chain.path.length > known.length) turns.set(step.turnId, step.chain.path)
        break
      }
      case 'evict': {
        const name = blockName(step.chain, step.chain.path.length)
        if (held.delete(name)) index.apply({ kind: 'removed', hashes: [name] })
        break
      }
      case 'clear':
        held.clear()
        index.apply({ kind: 'cleared' })
        break
      case 'gap':
        for (const chain of step.evicted) held.delete(blockName(chain, chain.path.length))
        index.forget()
        turns.clear()
        break
    }
  }
  return { index, held, turns }
}

const truth = (held: ReadonlySet<string>, chain: Chain): number => {
  const missing = blocksOf(chain).findIndex((name) => !held.has(name))
  return (missing === -1 ? chain.path.length : missing) * 2
}
const claim = ({ index }: Play, chain: Chain): number =>
  index.residentTokens({ salt: chain.salt, lora: chain.lora, tokens: Uint32Array.from(tokensOf(chain.path)) })

describe('the block index after any sequence of events', () => {
  test('claims exactly what the engine holds while nothing is missed', () => {
    fc.assert(
      fc.property(
        fc.array(told, { maxLength: 60 }),
        fc.array(chains, { minLength: 1, maxLength: 8 }),
        (steps, asked) => {
          const played = play(steps, 100_000)
          for (const chain of asked) expect(claim(played, chain)).toBe(truth(played.held, chain))
          for (const [turnId, path] of played.turns)
            expect([...(played.index.turnTokens(turnId) ?? [])]).toEqual(tokensOf(path))
        },
      ),
      { numRuns: 500 },
    )
  })

  test('with gaps and little room, claims at most that, and knows of a turn only a prefix', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 10, arbitrary: told }, { weight: 1, arbitrary: gap }), { maxLength: 60 }),
        fc.array(chains, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 20 }),
        (steps, asked, maxBlocks) => {
          const played = play(steps, maxBlocks)
          for (const chain of asked) expect(claim(played, chain)).toBeLessThanOrEqual(truth(played.held, chain))
          expect(played.index.size).toBeLessThanOrEqual(maxBlocks)
          for (const turnId of ['t1', 't2', 't3', 't4']) {
            const tokens = [...(played.index.turnTokens(turnId) ?? [])]
            const paths = steps.flatMap((step) =>
              step.kind === 'compute' && step.turnId === turnId ? [step.chain.path] : [],
            )
            const possible = ['', ...paths].map((path) => tokensOf(path).slice(0, tokens.length))
            expect(possible).toContainEqual(tokens)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
