import { beforeEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createAnswerText } from '../../../../playground/engine/answer-text.ts'

function run(stops: readonly string[], pieces: readonly string[]): { text: string; stopped: boolean } {
  const answer = createAnswerText(stops, () => undefined)
  const stopped = pieces.some((piece) => answer.push(Buffer.from(piece))) || answer.end()
  return { text: answer.text(), stopped }
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

describe('text that is emitted', () => {
  let emitted: string[]
  beforeEach(() => {
    emitted = []
  })
  const answerText = (stops: readonly string[]) => createAnswerText(stops, (text) => emitted.push(text))

  test('a character that is cut in two is emitted once it is whole', () => {
    const answer = answerText([])
    for (const byte of Buffer.from('a€')) answer.push(Uint8Array.of(byte))
    expect(emitted).toEqual(['a', '', '', '€'])
  })

  test('a character that never becomes whole ends as U+FFFD', () => {
    const answer = answerText([])
    answer.push(Uint8Array.of(0xe2, 0x82))
    answer.end()
    expect(emitted).toEqual(['', '\uFFFD'])
  })

  test('text that could begin a stop string is held back until the end', () => {
    const answer = answerText(['stop'])
    answer.push(Buffer.from('a sto'))
    expect(emitted).toEqual(['a '])
    expect(answer.end()).toBe(false)
    expect(answer.text()).toBe('a sto')
  })
})
