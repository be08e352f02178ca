import { describe, expect, test } from '@jest/globals'
import { encodeGguf, type GgufContent, ggufFileBytes } from '../../../../../playground/engine/gguf/gguf-writer.ts'
import { readGguf } from './read-gguf.ts'

const content: GgufContent = {
  metadata: [
    ['a.uint32', { type: 'uint32', value: 4_294_967_295 }],
    ['a.float32', { type: 'float32', value: 0.5 }],
    ['a.bool', { type: 'bool', value: true }],
    ['a.string', { type: 'string', value: 'Ġ€' }],
    ['a.strings', { type: 'strings', value: ['', 'two'] }],
    ['a.int32s', { type: 'int32s', value: [-1, 2] }],
  ],
  tensors: [
    { name: 'odd', type: 'f32', dimensions: [3], fill: (target) => target.fill(1) },
    { name: 'even', type: 'f16', dimensions: [5, 2], fill: (target) => target.fill(2) },
  ],
}

describe('a GGUF file', () => {
  const file = Buffer.concat([...encodeGguf(content)])

  test('reads back as it was described', () => {
    const { version, metadata, tensors } = readGguf(file)
    expect(version).toBe(3)
    expect(Object.fromEntries(metadata)).toEqual({
      'a.uint32': 4_294_967_295,
      'a.float32': 0.5,
      'a.bool': true,
      'a.string': 'Ġ€',
      'a.strings': ['', 'two'],
      'a.int32s': [-1, 2],
    })
    expect(tensors).toEqual([
      { name: 'odd', typeId: 0, dimensions: [3], data: Buffer.alloc(12, 1) },
      { name: 'even', typeId: 1, dimensions: [5, 2], data: Buffer.alloc(20, 2) },
    ])
  })

  test('has the size that was told beforehand', () => {
    expect(ggufFileBytes(content)).toBe(file.length)
  })
})
