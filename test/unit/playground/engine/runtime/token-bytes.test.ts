import { describe, expect, test } from '@jest/globals'
import { createTokenBytes } from '../../../../../playground/engine/runtime/token-bytes.ts'

describe('the bytes of a token', () => {
  test.each([
    ['gpt2', 'Ġhello', ' hello'],
    ['gpt2', 'Ċ', '\n'],
    ['gpt2', 'âĤ¬', '€'],
    ['gpt2', '你', '你'],
    ['llama', '▁hello', ' hello'],
    ['llama', '<0x0A>', '\n'],
    ['llama', 'é', 'é'],
  ])('in a %s vocabulary, of %s', (model, entry, text) => {
    expect(Buffer.from(createTokenBytes(model)(entry)).toString()).toBe(text)
  })

  test('may be part of a character', () => {
    expect([...createTokenBytes('gpt2')('âĤ'), ...createTokenBytes('llama')('<0xAC>')]).toEqual([0xe2, 0x82, 0xac])
  })
})
