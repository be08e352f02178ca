import { expect, test } from '@jest/globals'
import { canonicalJson } from '../../../src/responsecache/response-key.ts'

const canonical = (text: string): string | undefined =>
  canonicalJson(new Map(Object.entries(JSON.parse(text))), { without: new Set(['stream', 'user']) })

test.each([
  ['an empty object', ' { } ', '{}'],
  [
    'members by name, at every depth',
    '{"b":{"d":1,"c":2},"a":[{"z":0,"y":0}]}',
    '{"a":[{"y":0,"z":0}],"b":{"c":2,"d":1}}',
  ],
  ['items in their order', '{"a":[3,1,2,[],{}]}', '{"a":[3,1,2,[],{}]}'],
  [
    'one escape for each character',
    '{"\\u0061":"\\u00e9\\/\\n\\u000a","b":"\\uD800"}',
    '{"a":"é/\\n\\n","b":"\\ud800"}',
  ],
  ['a member named __proto__', '{"__proto__":1,"a":{"__proto__":2}}', '{"__proto__":1,"a":{"__proto__":2}}'],
  ['the last of two members of one name', '{"a":1,"\\u0061":2}', '{"a":2}'],
  ['one spelling of a number', '{"a":1.0,"b":1e2,"c":0.10}', '{"a":1,"b":100,"c":0.1}'],
  ['constants', '{"a":true,"b":false,"c":null}', '{"a":true,"b":false,"c":null}'],
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
