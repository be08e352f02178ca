import { expect, test } from '@jest/globals'
import { BlockReader } from '../../../../src/extproc/http2/block-reader.ts'

/** `:path` as a literal that enters the table. */
const newPath = (path: string): Buffer =>
  Buffer.concat([Buffer.from([0x40 + 4, path.length]), Buffer.from(path, 'latin1')])
/** `:path` as a literal that does not. */
const path = (text: string): Buffer => Buffer.concat([Buffer.from([4, text.length]), Buffer.from(text, 'latin1')])
/** Whatever entered the table last. */
const latest = Buffer.from([0x80 + 62])
/** The table loses everything, and begins anew with its old size. */
const emptied = Buffer.from([0x20, 0x3f, 0xe1, 0x1f])

test.each<[string, readonly Buffer[], readonly (string | undefined)[]]>([
  ['the same block twice means the same', [path('/a'), path('/a')], ['/a', '/a']],
  ['another block means something else', [path('/a'), path('/b'), path('/a')], ['/a', '/b', '/a']],
  ['a block that fills the table is read each time', [newPath('/a'), newPath('/a'), latest], ['/a', '/a', '/a']],
  [
    'what a block means changes with the table',
    [newPath('/a'), latest, latest, newPath('/b'), latest],
    ['/a', '/a', '/a', '/b', '/b'],
  ],
  [
    'a block that only resizes the table is not passed over',
    [newPath('/a'), latest, emptied, latest],
    ['/a', '/a', undefined, 'unreadable'],
  ],
])('%s', (_name, blocks, paths) => {
  const reader = new BlockReader()
  expect(
    blocks.map((block) => {
      const headers = reader.read(block)
      return headers === undefined ? 'unreadable' : headers.head.path
    }),
  ).toEqual(paths)
})

test('a block is known by its bytes, not by the memory that it lay in', () => {
  const reader = new BlockReader()
  const piece = path('/a')
  reader.read(piece)
  piece[2] = 'b'.charCodeAt(0)
  piece[3] = 'c'.charCodeAt(0)
  expect(reader.read(piece)?.head.path).toBe('bc')
})
