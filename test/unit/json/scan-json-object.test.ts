import { expect, test } from '@jest/globals'
import { scanJsonObject } from '../../../src/json/scan-json-object.ts'
import { countSlices } from '../../support/all-slices.ts'

const limits = { maxJsonDepth: 64, maxJsonKeys: 10_000_000 }
const mebibyte = 1024 * 1024

const filled = (begin: string, filler: string, end: string): Buffer =>
  Buffer.from(`${begin}${filler.repeat(mebibyte / Buffer.byteLength(filler))}${end}`)

// Whatever the bytes are, none of them is gone over twice, and the event loop gets its turn after each 64 KiB.
test.each([
  { name: 'numbers', text: filled('{"prompt":[1', ',1', ']}') },
  { name: 'empty arrays', text: filled('{"prompt":[[]', ',[]', ']}') },
  { name: 'empty objects', text: filled('{"prompt":[{}', ',{}', ']}') },
  { name: 'texts', text: filled('{"prompt":[""', ',""', ']}') },
  { name: 'keys', text: filled('{"a":1', ',"":1', '}') },
  { name: 'wanted keys in escapes', text: filled('{"a":1', ',"\\u0070rompt":1', '}') },
  { name: 'white space', text: filled('{"a":1', ' ', '}') },
  { name: 'one text', text: filled('{"a":"', 'x', '"}') },
  { name: 'one text of wide characters', text: filled('{"a":"', '€', '"}') },
  { name: 'escapes', text: filled('{"a":"', '\\n', '"}') },
  { name: 'one number', text: filled('{"a":1', '0', '}') },
])('a text of 1 MiB is scanned in slices: $name', ({ text }) => {
  const { result, slices } = countSlices(scanJsonObject(text, limits, ['prompt']))

  expect(result.kind).toBe('object')
  expect(slices).toBeGreaterThanOrEqual(16)
  expect(slices).toBeLessThanOrEqual(18)
})

test.each([
  { name: 'open arrays', text: filled('{"a":', '[', ''), kind: 'too-complex' },
  { name: 'colons', text: filled('{', ':', ''), kind: 'not-json' },
  { name: 'closing brackets', text: filled('', ']', ''), kind: 'not-json' },
])('a text that cannot be taken ends the scan where that is clear: $name', ({ text, kind }) => {
  const { result, slices } = countSlices(scanJsonObject(text, limits))

  expect(result.kind).toBe(kind)
  expect(slices).toBeLessThanOrEqual(2)
})
