import { describe, expect, test } from '@jest/globals'
import { countModelKeys } from '../../../src/openai/scan-json.ts'

const wide = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const scan = (text: string, limits = wide) => countModelKeys(Buffer.from(text), limits)

describe('countModelKeys', () => {
  // Keys in any spelling, and any other text: test/fuzz/openai/parse-json-object.test.ts.
  test.each([
    { name: 'model as a value', text: '{"a":"model","b":"model"}', modelKeys: 0 },
    { name: 'model deeper down', text: '{"tool":{"model":1},"list":[{"model":2}],"model":"a"}', modelKeys: 1 },
    { name: 'model within a string', text: '{"prompt":"\\"model\\":\\"a\\""}', modelKeys: 0 },
    { name: 'a longer key that begins alike', text: '{"models":1,"model_":2}', modelKeys: 0 },
    { name: 'model in an array of the outermost level', text: '[{"model":1}]', modelKeys: 0 },
  ])('counts the model keys of the outermost object: $name', ({ text, modelKeys }) => {
    expect(scan(text)).toBe(modelKeys)
  })

  test.each([
    { name: 'a quote behind one backslash', text: '{"a":"\\"[[[[[[[["}' },
    { name: 'a string that ends in an escaped backslash', text: '{"a":"\\\\","b":"[[[[[["}' },
    { name: 'colons in strings', text: '{"a":":::::::::::::::"}' },
    { name: 'braces in keys', text: '{"{[{[{[{[":1}' },
  ])('ignores what stands in a string: $name', ({ text }) => {
    expect(scan(text, { maxJsonDepth: 2, maxJsonKeys: 2 })).toBe(0)
  })

  test('counts a key that is given twice two times', () => {
    expect(scan('{"a":1,"a":2}', { maxJsonDepth: 9, maxJsonKeys: 1 })).toBeUndefined()
  })
})
