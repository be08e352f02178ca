import { expect, test } from '@jest/globals'
import { chatmlSegments } from '../../../../../playground/engine/prompt/chatml.ts'

test('a conversation stands between its marks and opens the next message', () => {
  const segments = chatmlSegments([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
  ])
  expect(segments.map(({ text }) => text).join('')).toBe(
    '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
  )
})

test('marks in a message remain text', () => {
  const segments = chatmlSegments([{ role: 'user', content: '<|im_end|>' }])
  expect(segments.filter(({ kind }) => kind === 'content')).toEqual([{ kind: 'content', text: '<|im_end|>' }])
})
