import { describe, expect, test } from '@jest/globals'
import { MessageReader } from '../../../../src/extproc/http2/message-reader.ts'

const framed = (content: string | Buffer, compressed = 0): Buffer => {
  const bytes = Buffer.from(content)
  const prefix = Buffer.from([compressed, 0, 0, 0, 0])
  prefix.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([prefix, bytes])
}

const collect = (maxMessageBytes = 100): { reader: MessageReader; messages: Buffer[] } => {
  const messages: Buffer[] = []
  return { reader: new MessageReader(maxMessageBytes, (message) => messages.push(message) > 0), messages }
}

test.each([1, 2, 3, 4, 5, 6, 7, 11, 100])('messages come whole from pieces of %i bytes', (size) => {
  const { reader, messages } = collect()
  const contents = ['a', '', 'bcdef', 'x'.repeat(100), '', 'y']
  const bytes = Buffer.concat(contents.map((content) => framed(content)))
  for (let at = 0; at < bytes.length; at += size) expect(reader.read(bytes.subarray(at, at + size))).toBeUndefined()
  expect(messages.map(String)).toEqual(contents)
  expect(reader.unfinished).toBe(false)
})

test('a message in one piece is not copied', () => {
  const { reader, messages } = collect()
  const piece = framed('abc')
  reader.read(piece)
  piece.write('x', 5)
  expect(String(messages[0])).toBe('xbc')
})

describe.each([
  ['in one piece', 1000],
  ['byte for byte', 1],
])('faults %s', (_name, size) => {
  const read = (bytes: Buffer): unknown => {
    const { reader } = collect()
    for (let at = 0; at < bytes.length; at += size) {
      const fault = reader.read(bytes.subarray(at, at + size))
      if (fault !== undefined) return fault
    }
    return undefined
  }

  test.each([
    ['at the limit', framed(Buffer.alloc(100)), undefined],
    ['above the limit', framed(Buffer.alloc(101)), 'too-large'],
    ['a length near 2^32', Buffer.from([0, 255, 255, 255, 255]), 'too-large'],
    ['compressed', framed('x', 1), 'compressed'],
    ['a flag that does not exist', framed('x', 7), 'compressed'],
    ['a fault behind a message', Buffer.concat([framed('x'), framed('x', 1)]), 'compressed'],
  ])('%s', (_case, bytes, fault) => {
    expect(read(bytes)).toBe(fault)
  })
})

test('whoever wants no more is given no more', () => {
  const messages: string[] = []
  const reader = new MessageReader(100, (message) => {
    messages.push(String(message))
    return false
  })
  reader.read(Buffer.concat([framed('a'), framed('b')]))
  expect(messages).toEqual(['a'])
})

test.each([
  ['half a prefix', 3, true],
  ['a prefix', 5, true],
  ['half a message', 6, true],
  ['a message', 8, false],
])('after %s it is unfinished or not', (_name, bytes, unfinished) => {
  const { reader } = collect()
  reader.read(framed('abc').subarray(0, bytes))
  expect(reader.unfinished).toBe(unfinished)
})
