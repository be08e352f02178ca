import { expect, test } from '@jest/globals'
import { canonicalJson } from '../../../src/responsecache/canonical-json.ts'

const without = new Set(['"stream"', '"user"'])

test.each([
  ['an empty object', ' { } ', '{}'],
  [
    'members by name, at every depth',
    '{"b":{"d":1,"c":2},"a":[{"z":0,"y":0}]}',
    '{"a":[{"y":0,"z":0}],"b":{"c":2,"d":1}}',
  ],
  ['items in their order', '{"a":[3,1,2,[],{}]}', '{"a":[3,1,2,[],{}]}'],
  ['no space between tokens', '\n{ "a" :\t1 , "b" : [ 1 , 2 ] }\r\n', '{"a":1,"b":[1,2]}'],
  ['space within texts', '{"a b":" x  y "}', '{"a b":" x  y "}'],
  ['one spelling of a text', '{"\\u0061":"\\u00e9\\/\\n\\u000a"}', '{"a":"é/\\n\\n"}'],
  ['texts that look like structure', '{"a":"}],{\\"b\\":1","c":"\\\\"}', '{"a":"}],{\\"b\\":1","c":"\\\\"}'],
  ['half a surrogate pair', '{"a":"\\uD800"}', '{"a":"\\ud800"}'],
  [
    'numbers as they are written',
    '{"a":1.0,"b":1e2,"c":-0,"d":12345678901234567890}',
    '{"a":1.0,"b":1e2,"c":-0,"d":12345678901234567890}',
  ],
  ['constants', '{"a":true,"b":false,"c":null}', '{"a":true,"b":false,"c":null}'],
  ['without some members', '{"stream":true,"a":{"stream":1},"us\\u0065r":{"x":[1]}}', '{"a":{"stream":1}}'],
])('%s', (_name, text, expected) => {
  expect(canonicalJson(text, { without })).toBe(expected)
})

test.each([
  ['at the top', '{"a":1,"b":2,"a":1}'],
  ['deeper', '{"b":[{"a":1,"a":2}]}'],
  ['spelt differently', '{"a":1,"\\u0061":1}'],
])('a member that is there twice: %s', (_name, text) => {
  expect(canonicalJson(text, { without })).toBeUndefined()
})
