import { describe, expect, test } from '@jest/globals'
import { isAccountedFor, isFromTurn, markOf, stillHolds } from '../../../../src/kvcache/llamacpp-slots/slot-evidence.ts'
import type { SlotSnapshot } from '../../../../src/kvcache/slots/slot-client.ts'

/** As llama-server reports a slot. */
const seen: SlotSnapshot = { id: 0, busy: false, task: 7, tokens: 100, keep: 77 }
const content = { tokens: 100, mark: markOf(seen) }

describe('stillHolds', () => {
  test.each<[string, boolean, Partial<SlotSnapshot>]>([
    ['nothing has changed', true, {}],
    ['something runs there', false, { busy: true }],
    ['something ran there', false, { task: 8 }],
    ['another turn ran there since the engine restarted', false, { keep: 78 }],
    ['it was erased', false, { tokens: 0 }],
    ['the engine restarted', false, { task: undefined, tokens: undefined, keep: undefined }],
  ])('when %s: %s', (_name, expected, change) => {
    expect(stillHolds(content, { ...seen, ...change })).toBe(expected)
  })

  test('an engine that reports no task may have restarted', () => {
    const silent = { ...seen, task: undefined }
    expect(stillHolds({ ...content, mark: markOf(silent) }, silent)).toBe(false)
  })
})

describe('isAccountedFor', () => {
  test.each<[string, boolean, Parameters<typeof isAccountedFor>[0], Partial<SlotSnapshot>]>([
    ['slot with the content of the ledger', true, content, {}],
    ['slot in which something ran since', false, content, { task: 8 }],
    ['slot with unknown content', false, undefined, {}],
    ['empty slot with unknown content', true, undefined, { tokens: 0 }],
    ['slot that never ran, perhaps loaded', false, undefined, { task: undefined, tokens: undefined }],
  ])('%s: %s', (_name, expected, known, change) => {
    expect(isAccountedFor(known, { ...seen, ...change })).toBe(expected)
  })
})

describe('isFromTurn', () => {
  const turn = { previousTask: 6, tag: 77, totalTokens: 101 }
  const untagged = { keep: undefined }

  test.each<[string, boolean, Partial<SlotSnapshot>, Partial<Parameters<typeof isFromTurn>[0]>]>([
    ['all but the last token', true, {}, {}],
    ['every token', true, {}, { totalTokens: 100 }],
    ['a token too few', false, {}, { totalTokens: 102 }],
    ['a token too many', false, {}, { totalTokens: 99 }],
    ['a slot in which something runs', false, { busy: true }, {}],
    ['what was there before', false, { task: 6 }, {}],
    ['the first that ever ran there', true, {}, { previousTask: -1 }],
    ['an engine that tells no task', false, { task: undefined }, {}],
    ['an engine that tells no tokens', false, { tokens: undefined }, {}],
    ['an answer that carried no usage', true, {}, { totalTokens: undefined }],
    ['another tag on the same number of tokens', false, { keep: 78 }, {}],
    ['another tag, of an answer that carried no usage', false, { keep: 78 }, { totalTokens: undefined }],
    ['an engine that repeats no tag', true, untagged, {}],
    ['an engine that repeats no tag, and no usage', false, untagged, { totalTokens: undefined }],
  ])('%s: %s', (_name, expected, slot, change) => {
    expect(isFromTurn({ ...turn, ...change }, { ...seen, ...slot })).toBe(expected)
  })
})
