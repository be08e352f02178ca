import { describe, expect, test } from '@jest/globals'
import { byteAlphabet, createVocabulary } from '../../../../playground/engine/vocabulary.ts'

describe.each(['bytes', 'words'] as const)('the vocabulary of %s', (kind) => {
  const { tokens, textTokens } = createVocabulary(kind)

  test('has each byte at its own id, and no token twice', () => {
    expect(tokens.slice(0, 256)).toEqual(byteAlphabet)
    expect(new Set(tokens).size).toBe(tokens.length)
    expect(tokens.slice(textTokens)).toEqual(['<|endoftext|>', '<|im_start|>', '<|im_end|>'])
  })
})

test('with words, every merge makes a token of two tokens, and every token is a byte or made by one', () => {
  const { tokens, textTokens, merges } = createVocabulary('words')
  const pairs = merges.map((merge) => merge.split(' '))
  expect(pairs.filter((pair) => pair.length !== 2)).toEqual([])
  const known = new Set(tokens.slice(0, textTokens))
  expect(pairs.flat().filter((part) => !known.has(part))).toEqual([])
  expect(new Set([...byteAlphabet, ...pairs.map((pair) => pair.join(''))])).toEqual(known)
})
