import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import {
  engineSessionOf,
  markOf,
  newTurnMark,
  perhapsLeftBy,
  stillHolds,
  wasLeftBy,
} from '../../../../src/kvcache/llamacpp-slots/slot-evidence.ts'
import type { SlotSnapshot } from '../../../../src/kvcache/slots/slot-snapshot.ts'
import type { SessionKey } from '../../../../src/sessions/session-record.ts'

const digest = createHash('sha256').update('ctx_one').digest()
const session = digest.toString('base64url') as SessionKey
const own = digest.toString('hex')
const foreign = 'ff'.repeat(32)
/** As llama-server reports a slot. */
const seen: SlotSnapshot = { id: 0, busy: false, task: 7, tokens: 100, session: undefined, keep: undefined }

test('a session is named to engines in hexadecimal', () => {
  expect(engineSessionOf(session)).toBe(own)
})

describe('stillHolds', () => {
  const holds = { kind: 'holds', artefactId: 'a', tokens: 100, mark: markOf('boot', seen) } as const
  const silent = { ...seen, task: undefined, tokens: undefined }

  test.each<[string, boolean, Partial<SlotSnapshot>, string]>([
    ['nothing has changed', true, {}, 'boot'],
    ['something runs there', false, { busy: true }, 'boot'],
    ['something ran there', false, { task: 8 }, 'boot'],
    ['it was erased', false, { tokens: 0 }, 'boot'],
    ['the engine was started anew', false, {}, 'another boot'],
    ['the session itself ran there', true, { task: 8, tokens: 120, session: own }, 'boot'],
    ['the session ran there and left less', false, { task: 8, tokens: 99, session: own }, 'boot'],
    ['somebody else ran there', false, { task: 8, tokens: 120, session: foreign }, 'boot'],
    ['nobody’s request ran there', false, { task: 8, tokens: 120, session: null }, 'boot'],
  ])('when %s: %s', (_name, expected, change, boot) => {
    expect(stillHolds(holds, { ...seen, ...change }, { boot, session })).toBe(expected)
  })

  test.each([
    ['by its boot', true, 'boot'],
    ['not at all', false, ''],
  ])('a slot that tells nothing is known %s: %s', (_name, expected, boot) => {
    expect(stillHolds({ ...holds, mark: markOf(boot, silent) }, silent, { boot, session })).toBe(expected)
  })
})

describe('wasLeftBy', () => {
  const turn = { session, taskBefore: 6, turnMark: undefined, totalTokens: 101 }
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
    ['the session, by the engine’s word', true, { session: own }, { totalTokens: undefined }],
    ['somebody else, by the engine’s word', false, { session: foreign }, {}],
    ['nobody, by the engine’s word', false, { session: null }, {}],
  ])('%s: %s', (_name, expected, slot, change) => {
    expect(wasLeftBy({ ...turn, ...change }, { ...seen, ...slot })).toBe(expected)
  })
})

describe('newTurnMark', () => {
  test('is a new whole number for every turn', () => {
    const marks = new Set(Array.from({ length: 100 }, () => newTurnMark([seen])))
    expect([...marks].every((mark) => Number.isSafeInteger(mark))).toBe(true)
    expect(marks.size).toBeGreaterThan(90)
  })

  test('is not needed where the engine tells sessions apart', () => {
    expect(newTurnMark([{ ...seen, session: null }])).toBeUndefined()
  })
})

describe('perhapsLeftBy', () => {
  const slots: readonly SlotSnapshot[] = [
    { id: 0, busy: false, task: 5, tokens: 100, session: undefined, keep: undefined },
    { id: 1, busy: false, task: 9, tokens: 40, session: undefined, keep: undefined },
    { id: 2, busy: false, task: undefined, tokens: undefined, session: undefined, keep: undefined },
  ]
  const toldBy = (sessions: readonly (string | null)[]) =>
    slots.map((slot, index) => ({ ...slot, session: sessions[index] ?? null }))
  const tasksBefore = { 0: 5, 1: 6 }

  test.each<[string, readonly number[], Parameters<typeof perhapsLeftBy>[0], readonly SlotSnapshot[]]>([
    ['the session, by the engine’s word', [1], { session, tasksBefore, totalTokens: 7 }, toldBy([foreign, own, null])],
    ['as many tokens, and something ran there', [1], { session, tasksBefore, totalTokens: 41 }, slots],
    ['as many tokens, but nothing ran there', [], { session, tasksBefore, totalTokens: 101 }, slots],
    [
      'as many tokens, where nothing was seen before',
      [0],
      { session, tasksBefore: undefined, totalTokens: 101 },
      slots,
    ],
    ['anything ran there', [1], { session, tasksBefore, totalTokens: undefined }, slots],
    ['nothing is known', [], { session, tasksBefore: undefined, totalTokens: undefined }, slots],
  ])('%s: %j', (_name, expected, turn, seenSlots) => {
    expect(perhapsLeftBy(turn, seenSlots).map(({ id }) => id)).toEqual(expected)
  })
})
