import { expect, test } from '@jest/globals'
import { readJson } from '../../../src/json/read-json.ts'

const arrays = (count: number): string => `[${'[],'.repeat(count - 2)}[]]`

test.each<[string, string, number | undefined, boolean]>([
  ['an answer of 500 models', `[${'{"id":"m","permission":[{"id":"p"}]},'.repeat(499)}{}]`, undefined, true],
  ['arrays all through', arrays(30_000), undefined, false],
  ['as many arrays in a text that may be longer', arrays(30_000), 1_000_000, true],
])('%s', (_title, text, maxLength, isTaken) => {
  expect(readJson(text, maxLength) !== undefined).toBe(isTaken)
})
