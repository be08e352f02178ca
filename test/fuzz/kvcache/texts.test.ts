import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { formatPayload, parsePayload } from '../../../src/kvcache/llamacpp-slots/artefact.ts'

/** Texts that come back from a store: anything, and things that look right. */
const anyText = fc.oneof(
  fc.string(),
  fc.json(),
  fc
    .record({
      file: fc.oneof(fc.string(), fc.constant(`ctx-${'a'.repeat(40)}.kv`)),
      fingerprint: fc.string(),
      bytes: fc.option(fc.nat(), { nil: undefined }),
      sha256: fc.string(),
    })
    .map((value) => JSON.stringify(value)),
)

describe('payloads from outside', () => {
  test('a payload is read only with a plain artefact file name', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(parsePayload(text)?.file ?? `ctx-${'0'.repeat(32)}.kv`).toMatch(/^ctx-[\w-]{32,64}\.kv$/)
      }),
    )
  })

  test('what was read is written and read again unchanged', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const artefact = parsePayload(text)
        expect(artefact && parsePayload(formatPayload(artefact))).toEqual(artefact)
      }),
    )
  })
})
