import { describe, expect, test } from '@jest/globals'
import type { BlockHash, KvEvent } from '../../../../src/kvcache/kv-events/decode-events.ts'
import { createTurnChains } from '../../../../src/kvcache/kv-events/turn-chains.ts'
import { tokensFrom } from '../../../support/kv-event-messages.ts'

const mebibyte = 1024 * 1024

/** Blocks of four tokens; block n holds the tokens 4n to 4n + 3. */
const report = (first: number, last: number, part: { turnId?: string; after?: BlockHash } = {}): KvEvent => ({
  kind: 'reported',
  turnId: 't',
  after: first === 0 ? undefined : first - 1,
  hashes: tokensFrom(first, last - first + 1),
  tokens: Uint32Array.from(tokensFrom(4 * first, 4 * (last - first + 1))),
  blockTokens: 4,
  ...part,
})
const whole = report(0, 2)
const removed = (...hashes: readonly number[]): KvEvent => ({ kind: 'removed', hashes })

describe('turn chains', () => {
  test.each<{ readonly name: string; readonly events: readonly KvEvent[]; readonly tokens: number; resident?: number }>(
    [
      { name: 'nothing, of nothing', events: [], tokens: 0 },
      { name: 'a chain in one event', events: [report(0, 2)], tokens: 12 },
      { name: 'a chain in two events', events: [report(0, 1), report(2, 3)], tokens: 16 },
      { name: 'a chain reported again', events: [report(0, 2), report(0, 2)], tokens: 12 },
      { name: 'a chain twice, less a block', events: [whole, whole, removed(2)], tokens: 12, resident: 8 },
      { name: 'a shorter report of a longer chain', events: [report(0, 2), report(0, 0), report(1, 1)], tokens: 12 },
      { name: 'a longer report of a chain', events: [report(0, 1), report(0, 3)], tokens: 16 },
      { name: 'blocks that overlap', events: [report(0, 2), report(2, 4)], tokens: 20 },
      { name: 'no blocks behind a missed one', events: [report(0, 0), report(2, 3)], tokens: 4 },
      { name: 'a whole report after missed blocks', events: [report(2, 3), report(0, 3)], tokens: 16 },
      { name: 'nothing of another turn', events: [report(0, 1, { turnId: 'other' })], tokens: 0 },
      { name: 'removed blocks, not resident', events: [report(0, 2), removed(1)], tokens: 12, resident: 4 },
      { name: 'a removed block that came back', events: [report(0, 2), removed(1), report(1, 1)], tokens: 12 },
      { name: 'cleared blocks, not resident', events: [report(0, 2), { kind: 'cleared' }], tokens: 12, resident: 0 },
    ],
  )('hold $name', ({ events, tokens, resident = tokens }) => {
    const chains = createTurnChains(mebibyte)
    for (const event of events) chains.apply(event)
    expect([...(chains.tokens('t') ?? [])]).toEqual(tokensFrom(0, tokens))
    expect(chains.residentTokens('t')).toBe(resident)
  })

  test('blocks of another size do not extend a chain', () => {
    const chains = createTurnChains(mebibyte)
    chains.apply(report(0, 1))
    chains.apply({ kind: 'reported', turnId: 't', after: 1, hashes: [9], tokens: Uint32Array.of(1), blockTokens: 1 })
    expect(chains.tokens('t')).toHaveLength(8)
  })

  test('of two branches the longer one counts, with its own tokens', () => {
    const chains = createTurnChains(mebibyte)
    chains.apply(report(0, 2))
    const branch = { kind: 'reported', turnId: 't', blockTokens: 4 } as const
    chains.apply({ ...branch, after: 0, hashes: [11], tokens: Uint32Array.of(1, 2, 3, 4) })
    expect([...(chains.tokens('t') ?? [])]).toEqual(tokensFrom(0, 12))
    chains.apply({ ...branch, after: 1, hashes: [11, 12], tokens: Uint32Array.from(tokensFrom(100, 8)) })
    expect([...(chains.tokens('t') ?? [])]).toEqual([...tokensFrom(0, 8), ...tokensFrom(100, 8)])
  })

  test('missed events leave the chain and nothing resident, until it is reported again', () => {
    const chains = createTurnChains(mebibyte)
    chains.apply(report(0, 2))
    chains.forgetResident()
    expect([chains.tokens('t')?.length, chains.residentTokens('t')]).toEqual([12, 0])
    chains.apply(report(0, 2))
    expect(chains.residentTokens('t')).toBe(12)
  })

  /** Turn after turn of one shape, until far more was reported than may be kept. */
  test.each([
    { name: 'many short chains', blocks: 1, blockTokens: 1 },
    { name: 'many long chains', blocks: 250, blockTokens: 16 },
    { name: 'blocks of one token', blocks: 600, blockTokens: 1 },
    { name: 'few blocks of many tokens', blocks: 1, blockTokens: 7_000 },
    { name: 'one chain that never ends', blocks: 250, blockTokens: 16, turnId: 'one' },
    { name: 'one chain beyond the limit', blocks: 1, blockTokens: 25_000 },
  ])('never take more memory than allowed: $name', ({ blocks, blockTokens, turnId }) => {
    const maxBytes = 128 * 1024
    const chains = createTurnChains(maxBytes)
    let mostBytes = 0
    for (let turn = 0; turn < 200; turn += 1) {
      chains.apply(reportOf(turn, { blocks, blockTokens, turnId: turnId ?? `${turn}` }))
      mostBytes = Math.max(mostBytes, chains.bytes)
    }
    expect(mostBytes).toBeGreaterThan(0)
    expect(mostBytes).toBeLessThanOrEqual(maxBytes)
  })

  test('the least recently used chain is dropped first', () => {
    const chains = createTurnChains(mebibyte)
    const reportLong = (turn: number): void =>
      chains.apply(reportOf(turn, { blocks: 1, blockTokens: 50_000, turnId: `${turn}` }))
    reportLong(0)
    reportLong(1)
    expect(chains.tokens('0')).toHaveLength(50_000)
    reportLong(2)
    expect([0, 1, 2].map((turn) => chains.tokens(`${turn}`)?.length)).toEqual([50_000, undefined, 50_000])
  })
})

/** A report whose hashes no other report has; of one turn, each continues the one before. */
const reportOf = (
  number: number,
  { blocks, blockTokens, turnId }: { readonly blocks: number; readonly blockTokens: number; readonly turnId: string },
): KvEvent => ({
  kind: 'reported',
  turnId,
  after: number === 0 || turnId !== 'one' ? undefined : `${number - 1}-${blocks - 1}`,
  hashes: Array.from({ length: blocks }, (_, at) => `${number}-${at}`),
  tokens: new Uint32Array(blocks * blockTokens),
  blockTokens,
})
