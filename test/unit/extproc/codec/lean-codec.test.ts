import { describe, expect, test } from '@jest/globals'
import { CodecError } from '../../../../src/extproc/codec/codec-error.ts'
import { createLeanCodec } from '../../../../src/extproc/codec/lean-codec.ts'
import { field, int } from '../protobuf-bytes.ts'

const codec = createLeanCodec()

const header = (key: string, value: string | Buffer): Buffer => field(1, field(1, key), field(3, value))

test('the method has the path that Envoy calls', () => {
  expect(codec.path).toBe('/envoy.service.ext_proc.v3.ExternalProcessor/Process')
})

describe('requests', () => {
  test('headers are read from raw_value, in latin1, with all values of a name', () => {
    const event = codec.decode(
      field(
        2,
        field(
          1,
          header(':method', 'POST'),
          header('x-a', '1'),
          header('x-a', Buffer.from([0xe9])),
          field(1, field(1, 'x-empty')),
          field(1, field(1, 'x-text'), field(2, 'the string field is not read')),
        ),
        int(3, 1),
      ),
    )
    const headers = event.kind === 'request-headers' ? event.headers : () => ['no request headers']
    expect([':method', 'x-a', 'x-empty', 'x-text', 'x-none', 'x-', 'y-a'].map(headers)).toEqual([
      ['POST'],
      ['1', 'é'],
      [''],
      [''],
      [],
      [],
      [],
    ])
    expect(event).toMatchObject({ endOfStream: true, bodyMode: 'unknown', answerMode: 'unknown' })
  })

  test('the configuration counts wherever it stands', () => {
    const expected = { kind: 'request-headers', bodyMode: 'buffered', answerMode: 'untold' }
    expect(codec.decode(Buffer.concat([field(11, int(1, 2)), field(2)]))).toMatchObject(expected)
    expect(codec.decode(Buffer.concat([field(2), field(11, int(1, 2))]))).toMatchObject(expected)
  })

  test('of two phases the last one counts', () => {
    expect(codec.decode(Buffer.concat([field(2), field(7)]))).toEqual({ kind: 'response-trailers' })
  })

  test('a body is a view of the message, not a copy', () => {
    const message = field(4, field(1, 'abc'), int(2, 1))
    const event = codec.decode(message)
    message.fill('x', 4, 7)
    expect(event).toEqual({ kind: 'request-body', body: Buffer.from('xxx'), endOfStream: true })
  })

  test.each([
    ['a group', Buffer.from([0x9b, 0x06, 0x08, 0x01, 0x9c, 0x06])],
    ['a group within a group', Buffer.from([0x9b, 0x06, 0x0b, 0x0c, 0x9c, 0x06])],
    ['fixed 32 bits', Buffer.from([0x9d, 0x06, 1, 2, 3, 4])],
    ['fixed 64 bits', Buffer.from([0x99, 0x06, 1, 2, 3, 4, 5, 6, 7, 8])],
    ['a number of 64 bits', Buffer.from([0x98, 0x06, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1])],
    ['a known field with another wire type', Buffer.from([0x10, 0x01])],
  ])('%s that is not known is passed over', (_name, foreign) => {
    expect(codec.decode(Buffer.concat([foreign, field(7), foreign]))).toEqual({ kind: 'response-trailers' })
  })

  test.each([
    ['a length beyond the end', Buffer.from([0x12, 0x7f, 0x00])],
    ['a length beyond the message that it stands in', Buffer.concat([field(4, Buffer.from([0x0a, 0x02])), field(7)])],
    ['a length near 2^32', Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x0f])],
    ['a length above 2^32', Buffer.from([0x12, 0x80, 0x80, 0x80, 0x80, 0x10])],
    ['a cut varint', Buffer.from([0x12, 0xff])],
    ['a varint of eleven bytes', Buffer.from([0x08, ...Buffer.alloc(10, 0x80), 0x01])],
    ['a wire type that does not exist', Buffer.from([0x17])],
    ['field 0', Buffer.from([0x02, 0x00])],
    ['a field number above 32 bits', Buffer.from([0x80, 0x80, 0x80, 0x80, 0x10])],
    ['a group without an end', Buffer.from([0x9b, 0x06])],
    ['the end of a group that never began', Buffer.from([0x9c, 0x06])],
    ['groups without end', Buffer.alloc(200_000, 0x0b)],
    ['four bytes of eight', Buffer.from([0x99, 0x06, 1, 2, 3, 4])],
  ])('%s is no message', (_name, bytes) => {
    expect(() => codec.decode(bytes)).toThrow(CodecError)
  })
})

describe('replies', () => {
  test('a reply is not changed by the next one', () => {
    const proceed = (value: string): Buffer =>
      codec.encode({
        kind: 'proceed',
        phase: 'request-headers',
        changes: { setHeaders: { 'x-a': value }, metadata: {} },
      })
    const first = proceed('first')
    const before = first.toString('hex')
    proceed('other')
    expect(first.toString('hex')).toBe(before)
  })

  test('a reply that could not be written leaves nothing behind', () => {
    const whole = codec.encode({ kind: 'extend', milliseconds: 1500 })
    const metadata = {
      get ctx(): never {
        throw new Error('unreadable')
      },
    }
    const changes = { setHeaders: { 'x-a': 'b' }, metadata }
    expect(() => codec.encode({ kind: 'proceed', phase: 'request-body', changes })).toThrow('unreadable')
    expect(codec.encode({ kind: 'extend', milliseconds: 1500 })).toEqual(whole)
  })

  test.each([10, 64, 65, 5000, 100_000])('a value of %i characters', (length) => {
    const reply = codec.encode({
      kind: 'proceed',
      phase: 'request-headers',
      changes: { setHeaders: { 'x-a': 'é'.repeat(length) }, metadata: {} },
    })
    const value = field(1, field(1, 'x-a'), field(3, Buffer.alloc(length, 0xe9)))
    expect(reply.equals(field(1, field(1, field(2, field(1, value, int(3, 2))))))).toBe(true)
  })
})
