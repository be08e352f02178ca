import { expect, test } from '@jest/globals'
import { canonicalJson } from '../../../src/responsecache/response-key.ts'

const canonical = (text: string): string | undefined =>
  canonicalJson(new Map(Object.entries(JSON.parse(text))), { without: new Set(['stream', 'user']) })

// Orders, spaces, escapes and numbers: test/fuzz/responsecache/response-key.test.ts.
test.each([
  ['an empty object', ' { } ', '{}'],
  ['the last of two members of one name', '{"a":1,"\\u0061":2}', '{"a":2}'],
  [
    'no outer members left out of keys',
    '{"stream":true,"a":{"stream":1},"us\\u0065r":{"x":[1]}}',
    '{"a":{"stream":1}}',
  ],
])('canonical JSON has %s', (_name, text, expected) => {
  expect(canonical(text)).toBe(expected)
})

test.each(['9007199254740992', '-9007199254740993', '1e400'])('a request with the number %s has no key', (number) => {
  expect(canonical(`{"a":[{"b":${number}}]}`)).toBeUndefined()
})
