import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createAnswerText } from '../../../../playground/engine/answer-text.ts'

function run(stops: readonly string[], pieces: readonly string[]): { text: string; stopped: boolean } {
  const answer = createAnswerText(stops)
  let text = ''
  for (const piece of pieces) {
    const match = answer.push(Buffer.from(piece))
    text += match.text
    if (match.stopped) return { text, stopped: true }
  }
  return { text: text + answer.end().text, stopped: false }
}

describe('stop strings', () => {
  test.each([
    ['without stop strings', [], ['a', 'b'], 'ab', false],
    ['with none that occurs', ['x'], ['a', 'b'], 'ab', false],
    ['with one inside a piece', ['x'], ['axb'], 'a', true],
    ['with one across pieces', ['xyz'], ['ax', 'y', 'zb'], 'a', true],
    ['with a beginning that comes to nothing', ['xyz'], ['ax', 'y', 'b'], 'axyb', false],
    ['with a beginning at the end', ['xyz'], ['ax'], 'ax', false],
    ['with a beginning inside a beginning', ['aab'], ['aa', 'ab'], 'a', true],
    ['with the one that is complete first', ['abcd', 'bc'], ['abcd'], 'a', true],
  ])('%s', (_, stops, pieces, text, stopped) => {
    expect(run(stops, pieces)).toEqual({ text, stopped })
  })

  test('gives the same answer however the text is cut', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(fc.array(word, { maxLength: 3 }), fc.array(word, { maxLength: 8 }), (stops, pieces) => {
        expect(run(stops, pieces)).toEqual(run(stops, Array.from(pieces.join(''))))
      }),
    )
  })

  test('sends nothing that is part of a stop string, and all that comes before it', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 })
    fc.assert(
      fc.property(word, word, (before, after) => {
        expect(run(['#'], Array.from(`${before}#${after}`))).toEqual({ text: before, stopped: true })
      }),
    )
  })
})

test('a character that is cut in two is emitted once it is whole', () => {
  const text = createAnswerText([])
  const pieces = [...Buffer.from('a€')].map((byte) => text.push(Uint8Array.of(byte)).text)
  expect(pieces).toEqual(['a', '', '', '€'])
})

test('a character that never becomes whole ends as U+FFFD', () => {
  const text = createAnswerText([])
  text.push(Uint8Array.of(0xe2, 0x82))
  expect(text.end()).toEqual({ text: '\uFFFD', stopped: false })
})

test('text that could begin a stop string is held back until the end', () => {
  const text = createAnswerText(['stop'])
  expect(text.push(Buffer.from('a sto'))).toEqual({ text: 'a ', stopped: false })
  expect(text.end()).toEqual({ text: 'sto', stopped: false })
})
