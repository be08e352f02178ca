import { describe, expect, test } from '@jest/globals'
import { duration, share, size, whole } from '../../../src/commands/figures.ts'
import { renderFields, renderTable } from '../../../src/commands/table.ts'

test('a table has aligned columns, and no control characters of others', () => {
  const rows = [
    { name: 'a\x1b[2Jb', count: 1_234 },
    { name: 'long name', count: 5 },
  ]
  const table = renderTable(
    [
      { title: 'NAME', of: (row: (typeof rows)[number]) => row.name },
      { title: 'COUNT', of: (row) => whole(row.count), align: 'right' },
    ],
    rows,
  )
  expect(table.split('\n')).toEqual(['NAME       COUNT', 'a�[2Jb     1,234', 'long name      5'])
  expect(
    renderFields([
      ['a', '1'],
      ['name', 'x\ny'],
    ]),
  ).toBe('a     1\nname  x�y')
})

describe('figures', () => {
  test.each([
    [whole(undefined), '-'],
    [whole(1_234_567.4), '1,234,567'],
    [size(0), '0 B'],
    [size(1_023), '1023 B'],
    [size(1_536), '1.5 KiB'],
    [size(200 * 1024 ** 2), '200 MiB'],
    [size(3 * 1024 ** 5), '3072 TiB'],
    [size(null), '-'],
    [duration(0.4), '0s'],
    [duration(59), '59s'],
    [duration(60), '1m'],
    [duration(3_725), '1h 2m'],
    [duration(200_000), '2d 7h'],
    [share(1, 3), '33%'],
    [share(0, 0), '-'],
  ])('%s', (shown, expected) => {
    expect(shown).toBe(expected)
  })
})
