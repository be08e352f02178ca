import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { formatPayload, parsePayload } from '../../../src/kvcache/llamacpp-slots/artefact.ts'
import { formatClaim, parseClaim } from '../../../src/kvcache/llamacpp-slots/claim.ts'

/** Texts that come back from a store or from Envoy: anything, and things that look right. */
const anyText = fc.oneof(
  fc.string(),
  fc.json(),
  fc
    .record({
      file: fc.oneof(fc.string(), fc.constant(`ctx-${'a'.repeat(40)}.kv`)),
      fingerprint: fc.anything(),
      pod: fc.anything(),
      slot: fc.anything(),
      bytes: fc.anything(),
    })
    .map((value) => JSON.stringify(value, (_key, member) => (typeof member === 'bigint' ? `${member}` : member))),
)

describe('texts from outside', () => {
  test('a payload names a plain file of ours or nothing', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(parsePayload(text)?.file ?? `ctx-${'0'.repeat(32)}.kv`).toMatch(/^ctx-[\w-]{32,64}\.kv$/)
      }),
    )
  })

  test('what was read once is read the same again', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const artefact = parsePayload(text)
        expect(artefact && parsePayload(formatPayload(artefact))).toEqual(artefact)
        const claim = parseClaim(text)
        expect(parseClaim(formatClaim(claim))).toEqual(claim)
      }),
    )
  })
})
