import { describe, expect, test } from '@jest/globals'
import { encodeSequence, readMessage } from '../../../../src/kvcache/kv-events/zmq-frames.ts'

const payload = Buffer.from('payload')

describe('readMessage', () => {
  test.each<{ readonly name: string; readonly frames: readonly Buffer[]; readonly expected: unknown }>([
    {
      name: 'a batch is decoded to its texts',
      frames: [Buffer.from('kv'), encodeSequence(258), payload],
      expected: { kind: 'batch', sequence: 258, payload },
    },
    {
      name: 'the end of a replay',
      frames: [Buffer.alloc(0), encodeSequence(-1), Buffer.alloc(0)],
      expected: { kind: 'end' },
    },
    { name: 'a longer topic', frames: [Buffer.from('kv2'), encodeSequence(1), payload], expected: { kind: 'foreign' } },
    { name: 'nothing', frames: [], expected: { kind: 'nonsense' } },
    { name: 'too few frames', frames: [Buffer.from('kv'), encodeSequence(1)], expected: { kind: 'nonsense' } },
    {
      name: 'too many frames',
      frames: [Buffer.from('kv'), encodeSequence(1), payload, payload],
      expected: { kind: 'nonsense' },
    },
    { name: 'a short number', frames: [Buffer.from('kv'), Buffer.alloc(4), payload], expected: { kind: 'nonsense' } },
    {
      name: 'a number beyond counting',
      frames: [Buffer.from('kv'), Buffer.from('7fffffffffffffff', 'hex'), payload],
      expected: { kind: 'nonsense' },
    },
    {
      name: 'a negative number',
      frames: [Buffer.from('kv'), encodeSequence(-2), payload],
      expected: { kind: 'nonsense' },
    },
  ])('reads $name', ({ frames, expected }) => {
    expect(readMessage(frames, 'kv')).toEqual(expected)
  })

  test('sequence numbers are eight bytes, big endian', () => {
    expect(encodeSequence(258).toString('hex')).toBe('0000000000000102')
  })
})
