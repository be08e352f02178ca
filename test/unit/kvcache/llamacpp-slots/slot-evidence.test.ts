import { describe, expect, test } from '@jest/globals'
import {
  isAccountedFor,
  markOf,
  newTurnMark,
  perhapsLeftBy,
  stillHolds,
  wasLeftBy,
} from '../../../../src/kvcache/llamacpp-slots/slot-evidence.ts'
import type { SlotSnapshot } from '../../../../src/kvcache/slots/slot-snapshot.ts'

/** As llama-server reports a slot. */
const seen: SlotSnapshot = { id: 0, busy: false, task: 7, tokens: 100, keep: undefined }

describe('stillHolds', () => {
  const holds = { kind: 'holds', artefactId: 'a', tokens: 100, mark: markOf('boot', seen) } as const
  const silent = { ...seen, task: undefined, tokens: undefined }

  test.each<[string, boolean, Partial<SlotSnapshot>, string]>([
    ['nothing has changed', true, {}, 'boot'],
    ['something runs there', false, { busy: true }, 'boot'],
    ['something ran there', false, { task: 8 }, 'boot'],
    ['it was erased', false, { tokens: 0 }, 'boot'],
    ['the engine was started anew', false, {}, 'another boot'],
  ])('when %s: %s', (_name, expected, change, boot) => {
    expect(stillHolds(holds, { ...seen, ...change }, boot)).toBe(expected)
  })

  test.each([
    ['by its boot', true, 'boot'],
    ['not at all', false, ''],
  ])('a slot without task and tokens, boot %s: %s', (_name, expected, boot) => {
    expect(stillHolds({ ...holds, mark: markOf(boot, silent) }, silent, boot)).toBe(expected)
  })
})

describe('isAccountedFor', () => {
  test.each<[string, boolean, Parameters<typeof isAccountedFor>[0], Partial<SlotSnapshot>]>([
    ['slot with the content of the ledger', true, { kind: 'holds', mark: markOf('boot', seen) }, {}],
    ['slot in which something ran since', false, { kind: 'holds', mark: markOf('boot', seen) }, { task: 8 }],
    ['clean slot without tokens', true, { kind: 'clean', mark: undefined }, { tokens: 0 }],
    ['clean slot that never ran', true, { kind: 'clean', mark: undefined }, { task: undefined, tokens: undefined }],
    ['clean slot with tokens', false, { kind: 'clean', mark: undefined }, {}],
  ])('%s: %s', (_name, expected, entry, change) => {
    expect(isAccountedFor(entry, { ...seen, ...change }, 'boot')).toBe(expected)
  })
})

describe('wasLeftBy', () => {
  const turn = { taskBefore: 6, turnMark: undefined, totalTokens: 101 }
  const marked = { turnMark: 77 }

  test.each<[string, boolean, Partial<SlotSnapshot>, Partial<Parameters<typeof wasLeftBy>[0]>]>([
    ['all but the last token', true, {}, {}],
    ['every token', true, {}, { totalTokens: 100 }],
    ['a token too few', false, {}, { totalTokens: 102 }],
    ['a token too many', false, {}, { totalTokens: 99 }],
    ['what was there before', false, { task: 6 }, {}],
    ['the first that ever ran there', true, {}, { taskBefore: undefined }],
    ['an answer that carried no usage', false, {}, { totalTokens: undefined }],
    ['an engine that tells no task', false, { task: undefined }, {}],
    ['an engine that tells no tokens', false, { tokens: undefined }, {}],
    ['the turn’s mark', true, { keep: 77 }, marked],
    ['the turn’s mark, of an answer that carried no usage', true, { keep: 77 }, { ...marked, totalTokens: undefined }],
    ['the turn’s mark on another number of tokens', false, { keep: 77 }, { ...marked, totalTokens: 50 }],
    ['the turn’s mark from before', false, { keep: 77, task: 6 }, marked],
    ['another mark on the same number of tokens', false, { keep: 78 }, marked],
    ['an engine that repeats no mark', true, {}, marked],
    ['an engine that repeats no mark, and no usage', false, {}, { ...marked, totalTokens: undefined }],
  ])('%s: %s', (_name, expected, slot, change) => {
    expect(wasLeftBy({ ...turn, ...change }, { ...seen, ...slot })).toBe(expected)
  })
})

describe('newTurnMark', () => {
  test('is a new whole number for every turn', () => {
    const marks = new Set(Array.from({ length: 100 }, () => newTurnMark()))
    expect([...marks].every((mark) => Number.isSafeInteger(mark))).toBe(true)
    expect(marks.size).toBeGreaterThan(90)
  })
})

describe('perhapsLeftBy', () => {
  const slots: readonly SlotSnapshot[] = [
    { id: 0, busy: false, task: 5, tokens: 100, keep: undefined },
    { id: 1, busy: false, task: 9, tokens: 40, keep: undefined },
    { id: 2, busy: false, task: undefined, tokens: undefined, keep: undefined },
  ]
  const tasksBefore = { 0: 5, 1: 6 }

  test.each<[string, readonly number[], Parameters<typeof perhapsLeftBy>[0], readonly SlotSnapshot[]]>([
    ['as many tokens, and something ran there', [1], { tasksBefore, totalTokens: 41 }, slots],
    ['as many tokens, but nothing ran there', [], { tasksBefore, totalTokens: 101 }, slots],
    ['as many tokens, where nothing was seen before', [0], { tasksBefore: undefined, totalTokens: 101 }, slots],
    ['anything ran there', [1], { tasksBefore, totalTokens: undefined }, slots],
    ['nothing is known', [], { tasksBefore: undefined, totalTokens: undefined }, slots],
  ])('%s: %j', (_name, expected, turn, seenSlots) => {
    expect(perhapsLeftBy(turn, seenSlots).map(({ id }) => id)).toEqual(expected)
  })
})
