import { expect, test } from '@jest/globals'
import { createAnswerText } from '../../../../playground/engine/answer-text.ts'

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
