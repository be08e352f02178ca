import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { createExtProcCodec } from '../../../src/extproc/codec.ts'
import { field, int, struct } from '../../unit/extproc/protobuf-bytes.ts'

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

test('any bytes are an event or an exception, and an event can be looked at', () => {
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.oneof(noise, anyFields), fc.string(), (bytes, name) => {
      const event = decodeOrThrow(bytes)
      expect(event === undefined || kinds.has(event.kind)).toBe(true)
      const values = event?.kind === 'request_headers' ? event.headers(name) : []
      expect(Array.isArray(values)).toBe(true)
    }),
    { numRuns: 5000 },
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

test('nesting without end is an exception, not the end of the process', () => {
  const startOfGroup = 0x0b
  expect(() => codec.decode(Buffer.alloc(200_000, startOfGroup))).toThrow()
})

const anyName = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
const anyLatin1 = fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const anyHeaders = fc.dictionary(anyName, anyLatin1, { maxKeys: 5, noNullPrototype: true })

test('header values survive to the byte', () => {
  fc.assert(
    fc.property(anyHeaders, (setHeaders) => {
      const reply = { kind: 'continue', phase: 'request_headers', setHeaders } as const
      const options = Object.entries(setHeaders).map(([name, value]) =>
        field(1, field(1, field(1, name), rawValue(value)), int(3, 2)),
      )
      const response = options.length === 0 ? field(1) : field(1, field(2, ...options))
      expect(codec.encode(reply).equals(field(1, response))).toBe(true)
    }),
  )
})

const rawValue = (value: string): Buffer => field(3, Buffer.from(value, 'latin1'))

test('a splice survives in any script', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (splice) => {
      const decision: ForwardDecision = { ...forward, splice }
      const expected = Buffer.concat([
        field(3, field(1)),
        field(8, struct({ 'envoy.lb': { 'x-gateway-destination-endpoint': 'a:1' }, ctx: { splice } })),
      ])
      expect(codec.encode({ kind: 'decision', phase: 'request_body', decision }).toString('hex')).toBe(
        expected.toString('hex'),
      )
    }),
  )
})

const forward: ForwardDecision = {
  kind: 'forward',
  destinations: ['a:1'],
  path: undefined,
  requestHeaders: {},
  splice: undefined,
  expectModel: undefined,
  responseHeaders: {},
  ticket: undefined,
}
