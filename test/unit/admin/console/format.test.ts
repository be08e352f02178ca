import { expect, test } from '@jest/globals'
import {
  ago,
  bytes,
  count,
  duration,
  milliseconds,
  rounded,
  share,
  until,
} from '../../../../src/admin/console/format.ts'

test.each([
  [0, '0 s'],
  [0.0834, '83 ms'],
  [0.9999, '1,000 ms'],
  [12.34, '12.3 s'],
  [99.9, '99.9 s'],
  [125, '2 min 5 s'],
  [180, '3 min'],
  [12_000, '3 h 20 min'],
  [183_600, '2 d 3 h'],
  [864_000, '10 d'],
])('%d seconds are %s', (seconds, words) => expect(duration(seconds)).toBe(words))

test.each([
  [null, '–'],
  [0, '0 B'],
  [512, '512 B'],
  [1536, '1.5 KiB'],
  [91_234_567_890, '85 GiB'],
  [1023 * 1024, '1,023 KiB'],
])('%s bytes are %s', (value, words) => expect(bytes(value)).toBe(words))

test('numbers have few digits, and a dash stands for what is unknown', () => {
  expect([count(12_345), count(null)]).toEqual(['12,345', '–'])
  expect([rounded(0.8666), rounded(15.04), rounded(1234.5)]).toEqual(['0.867', '15', '1,235'])
  expect([share(1, 3), share(0, 0), share(3, 3)]).toEqual(['33.3 %', '–', '100 %'])
  expect([milliseconds(1260), milliseconds(null), milliseconds(undefined)]).toEqual(['1.26 s', '–', '–'])
})

test('times are told from now, without seconds where there are minutes', () => {
  const now = new Date('2026-01-01T12:00:00Z')
  expect(ago('2026-01-01T11:59:30Z', now)).toBe('30 s ago')
  expect(ago('2026-01-01T11:12:29Z', now)).toBe('47 min ago')
  expect(ago('2026-01-01T12:00:01Z', now)).toBe('0 s ago')
  expect(until('2026-01-01T13:10:59Z', now)).toBe('in 1 h 10 min')
  expect(until('2026-01-01T12:00:00Z', now)).toBe('expired')
})
