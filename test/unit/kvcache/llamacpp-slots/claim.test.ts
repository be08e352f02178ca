import { describe, expect, test } from '@jest/globals'
import { type Claim, formatClaim, parseClaim } from '../../../../src/kvcache/llamacpp-slots/claim.ts'

describe('a claim', () => {
  test.each<[string, Claim]>([
    ['of a slot', { pod: '10.0.0.1:8080', slot: 3, previousTask: 17, tag: 99, fingerprint: 'f' }],
    ['of a slot that never ran', { pod: '[::1]:80', slot: 0, tag: 1, fingerprint: 'f' }],
    ['without a slot', { reason: 'no_room' }],
  ])('%s is read as it was written', (_name, claim) => {
    expect(parseClaim(formatClaim(claim))).toEqual(claim)
  })

  test.each([
    ['empty', ''],
    ['no JSON', 'x'],
    ['another shape', '{"slot":1}'],
    ['a slot that cannot be', '{"pod":"p:1","slot":-1,"tag":1,"fingerprint":"f"}'],
    ['a slot that is no number', '{"pod":"p:1","slot":"0","tag":1,"fingerprint":"f"}'],
  ])('that is %s is read as not attached', (_name, text) => {
    expect(parseClaim(text)).toEqual({ reason: 'not_attached' })
  })
})
