import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createUtf8Text } from '../../../../../playground/engine/prompt/utf8-text.ts'

/** Bytes and the places where they are cut. */
const pieces = (bytes: fc.Arbitrary<Uint8Array>) =>
  fc.tuple(bytes, fc.array(fc.nat(8))).map(([whole, lengths]) => {
    const cut: Uint8Array[] = []
    let start = 0
    for (const length of lengths) {
      cut.push(whole.subarray(start, start + length))
      start += length
    }
    return [...cut, whole.subarray(start)]
  })

function decode(parts: readonly Uint8Array[]): string[] {
  const text = createUtf8Text()
  return [...parts.map((part) => text.push(part)), text.end()]
}

describe('text from pieces of bytes', () => {
  test('is the text whose bytes they are, wherever they are cut', () => {
    const textBytes = fc.string({ unit: 'grapheme' }).map((text) => new Uint8Array(Buffer.from(text)))
    fc.assert(fc.property(pieces(textBytes), (parts) => decode(parts).join('') === Buffer.concat(parts).toString()))
  })

  test('is valid for any bytes, and the same wherever they are cut', () => {
    fc.assert(
      fc.property(pieces(fc.uint8Array({ maxLength: 40 })), (parts) => {
        const decoded = decode(parts)
        expect(decoded.map((piece) => Buffer.from(piece).toString())).toEqual(decoded)
        expect(decoded.join('')).toBe(decode([Buffer.concat(parts)]).join(''))
      }),
    )
  })

  test.each([
    ['a character in two pieces comes with the second', [[0xe2, 0x82], [0xac]], ['', '€', '']],
    ['a character that is never whole becomes a replacement at the end', [[0x41, 0xe2, 0x82]], ['A', '�']],
    ['a byte that fits nowhere becomes a replacement at once', [[0xff], [0x41]], ['�', 'A', '']],
    ['a byte order mark is text', [[0xef, 0xbb, 0xbf]], ['\u{feff}', '']],
  ])('%s', (_, parts, expected) => {
    expect(decode(parts.map((part) => Uint8Array.from(part)))).toEqual(expected)
  })
})
