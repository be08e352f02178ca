import { describe, expect, test } from '@jest/globals'
import { formatClaim, parseClaim, type SlotClaim } from '../../../../src/kvcache/llamacpp-slots/claim.ts'

describe('a claim', () => {
  test.each<[string, SlotClaim]>([
    ['of a slot', { kind: 'slot', pod: '10.0.0.1:8080', slot: 3, taskBefore: 17, turnMark: 99 }],
    [
      'of a slot that never ran',
      { kind: 'slot', pod: '[::1]:80', slot: 0, taskBefore: undefined, turnMark: undefined },
    ],
    ['without a slot', { kind: 'none', reason: 'no_room', tasksBefore: undefined }],
    ['without a slot, with the tasks of its pod', { kind: 'none', reason: 'no_room', tasksBefore: { 0: 12, 3: 0 } }],
  ])('%s is read as it was written', (_name, claim) => {
    expect(parseClaim(formatClaim(claim))).toEqual(claim)
  })

  test.each([
    ['empty', ''],
    ['no JSON', 'x'],
    ['another shape', '{"slot":1}'],
    ['a slot that cannot be', '{"pod":"p:1","slot":-1}'],
    ['a slot that is no number', '{"pod":"p:1","slot":"0"}'],
  ])('that is %s is read as not attached', (_name, text) => {
    expect(parseClaim(text)).toEqual({ kind: 'none', reason: 'not_attached', tasksBefore: undefined })
  })
})
