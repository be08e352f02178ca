import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createExtProcCodec } from '../../../src/extproc/codec.ts'
import { field, int } from '../../unit/extproc/protobuf-bytes.ts'

const codec = createExtProcCodec()

const kinds = new Set([
  'request_headers',
  'request_body',
  'request_trailers',
  'response_headers',
  'response_body',
  'response_trailers',
  'unknown',
])

const anyNumber = fc.integer({ min: 1, max: 20 })

/** Protobuf that is well-formed, of fields that need not be. */
const anyFields: fc.Arbitrary<Buffer> = fc.letrec<{ message: Buffer; part: Buffer }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 6 },
    fc.tuple(anyNumber, fc.nat()).map(([number, value]) => int(number, value)),
    fc.tuple(anyNumber, fc.uint8Array({ maxLength: 20 })).map(([number, bytes]) => field(number, Buffer.from(bytes))),
    fc.tuple(anyNumber, tie('message')).map(([number, message]) => field(number, message)),
  ),
  message: fc.array(tie('part'), { maxLength: 6 }).map((parts) => Buffer.concat(parts)),
})).message

test('any bytes decode to an event with readable headers, or throw an Error', () => {
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.oneof(noise, anyFields), fc.string(), (bytes, name) => {
      const event = decodeOrThrow(bytes)
      expect(event === undefined || kinds.has(event.kind)).toBe(true)
      const values = event?.kind === 'request_headers' ? event.headers(name) : []
      expect(Array.isArray(values)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

const decodeOrThrow = (bytes: Buffer): ReturnType<typeof codec.decode> | undefined => {
  try {
    return codec.decode(bytes)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Error)
    return undefined
  }
}

test('a message nested without end throws', () => {
  const startOfGroup = 0x0b
  expect(() => codec.decode(Buffer.alloc(200_000, startOfGroup))).toThrow()
})
