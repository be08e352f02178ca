import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createAccessLogMethod } from '../../../src/accesslog/access-log-method.ts'
import { parseEntry } from '../../../src/accesslog/parse-entry.ts'
import type { WireEntry } from '../../../src/accesslog/wire.ts'
import { double, field, int, opening } from '../../unit/extproc/protobuf-bytes.ts'

const method = createAccessLogMethod({
  service: { endTurn: async () => {}, clientLeft: async () => {} },
  hooks: { entryMalformed: () => {}, fault: () => {} },
})

/** A google.protobuf.Value of any kind, or of none. */
const anyValue = fc.oneof(
  fc.string().map((text) => field(3, text)),
  fc.double().map((number) => double(2, number)),
  fc.boolean().map((flag) => int(4, flag ? 1 : 0)),
  fc.constant(int(1, 0)),
  fc.constant(field(5)),
  fc.constant(field(6)),
  fc.constant(Buffer.alloc(0)),
)

const anyStruct = (...keys: readonly string[]): fc.Arbitrary<Buffer> =>
  fc
    .array(fc.tuple(fc.constantFrom(...keys, '__proto__', 'constructor'), anyValue))
    .map((members) => Buffer.concat(members.map(([key, value]) => field(1, field(1, key), field(2, value)))))

const namespace = (name: string, content: Buffer): Buffer => field(1, field(1, name), field(2, content))

const anyDuration = fc
  .tuple(fc.nat(), fc.nat(999_999_999))
  .map(([seconds, nanos]) => Buffer.concat([int(1, seconds), int(2, nanos)]))

/** Entries with everything that is read, in any combination and of any kind. */
const anyEntry = fc
  .record({
    sent: anyDuration,
    answered: anyDuration,
    host: fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()),
    port: fc.nat(70_000),
    flags: fc.array(fc.integer({ min: 1, max: 30 })),
    ctx: anyStruct('turn', 'splice'),
    usage: anyStruct('prompt_tokens', 'output_tokens', 'cached_tokens'),
    stream: anyStruct('sse', 'done', 'failed'),
    type: fc.integer({ min: 0, max: 13 }),
    status: fc.nat(999),
  })
  .chain((entry) => {
    const common = [
      field(8, entry.sent),
      field(9, entry.answered),
      field(13, field(1, field(2, entry.host), int(3, entry.port))),
      field(16, ...entry.flags.filter((flag) => flag !== 13).map((flag) => int(flag, 1))),
      field(17, namespace('ctx', entry.ctx), namespace('usage', entry.usage), namespace('stream', entry.stream)),
      int(33, entry.type),
    ]
    return fc
      .subarray(common, { minLength: 1 })
      .map((parts) => field(1, field(1, ...parts), field(4, field(1, int(1, entry.status)))))
  })

test('any entry is a turn in order, something else, or malformed: nothing is thrown', () => {
  fc.assert(
    fc.property(anyEntry, (bytes) => {
      for (const entry of method.decode(field(2, bytes))) {
        const parsed = parseEntry(entry)
        const turn = parsed.kind === 'turn' ? parsed.turn : undefined
        expect(turn === undefined || turn.ticket.length > 0).toBe(true)
        expect(turn?.complete === true && (turn.clientLeft || turn.upstreamFailed || turn.status === 0)).toBe(false)
        expect(turn?.firstByteMs ?? 0).toBeGreaterThanOrEqual(0)
        for (const count of Object.values(turn?.usage ?? {}))
          expect(Number.isSafeInteger(count) && count >= 0).toBe(true)
      }
    }),
    { numRuns: 3000 },
  )
})

test('objects of any form are read without an exception', () => {
  const anyShape = fc.record(
    {
      common_properties: fc.record(
        {
          metadata: fc.record({
            filter_metadata: fc.dictionary(fc.constantFrom('ctx', 'usage', 'stream'), fc.object()),
          }),
          upstream_remote_address: fc.object(),
          response_flags: fc.object(),
        },
        { requiredKeys: [] },
      ),
      request: fc.record({
        request_headers: fc.dictionary(fc.constantFrom('x-context-request-key', '__proto__'), fc.string()),
      }),
      response: fc.object(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(anyShape, (entry) => {
      expect(['turn', 'left', 'other', 'malformed']).toContain(parseEntry(entry as WireEntry).kind)
    }),
    { numRuns: 1000 },
  )
})

test('metadata nested without end is an exception, not the end of the process', () => {
  const [fields, value, structValue] = [1, 2, 5]
  const openings: Buffer[] = []
  let length = 0
  for (let depth = 0; depth < 20_000; depth++) {
    for (const number of [structValue, value, fields]) {
      const bytes = opening(number, length)
      openings.push(bytes)
      length += bytes.length
    }
  }
  const nested = Buffer.concat(openings.reverse())
  expect(() => method.decode(field(2, field(1, field(1, field(17, namespace('ctx', nested))))))).toThrow()
})

test('any bytes are a batch or an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(Array.isArray(entriesOrNone(Buffer.from(bytes)))).toBe(true)
    }),
    { numRuns: 3000 },
  )
})

const entriesOrNone = (bytes: Buffer): readonly WireEntry[] => {
  try {
    return method.decode(bytes)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Error)
    return []
  }
}
