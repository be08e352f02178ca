import { fileURLToPath } from 'node:url'
import { loadSync } from '@grpc/proto-loader'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { entriesOf, type WireBatch } from '../../../src/accesslog/wire.ts'
import { CodecError } from '../../../src/extproc/codec/codec-error.ts'
import { decodeHealthRequest } from '../../../src/extproc/codec/health-messages.ts'
import { createLeanCodec } from '../../../src/extproc/codec/lean-codec.ts'
import { decodeLogExport } from '../../../src/extproc/codec/log-export-message.ts'
import { createExtProcCodec } from '../../../src/extproc/codec.ts'
import type { ExtProcEvent, MetadataValue, Phase, Reply } from '../../../src/extproc/messages.ts'
import { loadWireMethod } from '../../../src/extproc/wire-methods.ts'
import { double, field, int } from '../../unit/extproc/protobuf-bytes.ts'

const lean = createLeanCodec()
const reference = createExtProcCodec()

const protos = fileURLToPath(new URL('../../../protos/', import.meta.url))

/** Turns plain objects into requests, the way round that no server needs. */
const requestWriter = (file: string, service: string, name: string): ((message: object) => Buffer) => {
  const definition = loadSync(file, { keepCase: true, longs: Number, includeDirs: [protos] })[service]
  const method = definition === undefined || 'format' in definition ? undefined : definition[name]
  if (method === undefined) throw new Error(`no ${name} in ${file}`)
  return (message) => method.requestSerialize(message)
}

const writeProcessingRequest = requestWriter(
  'external-processor.proto',
  'envoy.service.ext_proc.v3.ExternalProcessor',
  'Process',
)
const logsService = 'opentelemetry.proto.collector.logs.v1.LogsService'
const writeLogs = requestWriter('log-export.proto', logsService, 'Export')
const readLogs = loadWireMethod('log-export.proto', logsService, 'Export')

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
const text = fc.string({ unit: 'grapheme', maxLength: 90 })

/** Fields that no message here has, of every wire type. */
const foreign = fc
  .array(
    fc.oneof(
      fc.maxSafeNat().map((value) => int(50, value)),
      fc.double().map((value) => double(51, value)),
      bytes(300).map((value) => field(52, value)),
      bytes(4)
        .filter(({ length }) => length === 4)
        .map((value) => Buffer.concat([Buffer.from([0xad, 0x03]), value])),
      bytes(9).map((value) => Buffer.concat([Buffer.from([0xb3, 0x03]), field(1, value), Buffer.from([0xb4, 0x03])])),
    ),
    { maxLength: 3 },
  )
  .map((parts) => Buffer.concat(parts))

const names = [':method', ':path', 'x-session-id', 'x-session-ttl', 'authorization', 'x-a', '']
const anyHeaderMap = fc.array(
  fc.record({ key: fc.oneof(fc.constantFrom(...names), fc.stringMatching(/^[a-z-]{1,20}$/)), raw_value: bytes(80) }),
  { maxLength: 12 },
)
const anyHeaders = fc.record({ headers: fc.record({ headers: anyHeaderMap }), end_of_stream: fc.boolean() })
const anyBody = fc.record({ body: bytes(2000), end_of_stream: fc.boolean() })
const anyPhase = fc.oneof(
  anyHeaders.map((request_headers) => ({ request_headers })),
  anyHeaders.map((response_headers) => ({ response_headers })),
  anyBody.map((request_body) => ({ request_body })),
  anyBody.map((response_body) => ({ response_body })),
  fc.constantFrom({ request_trailers: {} }, { response_trailers: {} }, {}),
)
const anyConfig = fc.option(
  fc.record({
    request_body_mode: fc.integer({ min: -2, max: 8 }),
    response_body_mode: fc.integer({ min: -2, max: 8 }),
  }),
  { nil: undefined },
)
const anyRequest = fc
  .tuple(anyPhase, anyConfig, foreign, foreign)
  .map(([phase, config, before, after]) =>
    Buffer.concat([
      before,
      writeProcessingRequest({ ...phase, ...(config === undefined ? {} : { protocol_config: config }) }),
      after,
    ]),
  )

/** An event with what its headers say in place of the function that says it. */
const plain = (event: ExtProcEvent): object =>
  'headers' in event ? { ...event, headers: names.map((name) => event.headers(name)) } : event

test('requests are read as by the reference', () => {
  fc.assert(
    fc.property(anyRequest, (message) => {
      expect(plain(lean.decode(message))).toEqual(plain(reference.decode(message)))
    }),
    { numRuns: 3000 },
  )
})

const phases: readonly Phase[] = [
  'request-headers',
  'request-body',
  'request-trailers',
  'response-headers',
  'response-body',
  'response-trailers',
]
const headerName = fc.oneof(fc.stringMatching(/^[a-z:][a-z0-9-]{0,80}$/), text)
const latin1 = bytes(200).map((value) => value.toString('latin1'))
const setHeaders = fc.dictionary(headerName, latin1, { maxKeys: 6, noNullPrototype: true })
const { metadata } = fc.letrec<{ metadata: Record<string, MetadataValue>; value: MetadataValue }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, text, fc.string({ maxLength: 9000 }), tie('metadata')),
  metadata: fc.dictionary(text, tie('value'), { maxKeys: 4, noNullPrototype: true }),
}))
const anyReply: fc.Arbitrary<Reply> = fc.oneof(
  fc.constantFrom(...phases).map((phase): Reply => ({ kind: 'continue', phase })),
  fc
    .record({
      phase: fc.constantFrom('request-headers' as const, 'request-body' as const, 'response-headers' as const),
      setHeaders,
      metadata: fc.dictionary(text, metadata, { maxKeys: 3, noNullPrototype: true }),
    })
    .map(({ phase, ...changes }): Reply => ({ kind: 'proceed', phase, changes })),
  fc
    .record({ status: fc.integer({ min: 0, max: 999 }), headers: setHeaders, body: bytes(20_000), details: text })
    .map((answer): Reply => ({ kind: 'immediate', answer })),
  fc.double({ min: 1, max: 1e12, noNaN: true }).map((milliseconds): Reply => ({ kind: 'extend', milliseconds })),
)

test('replies are written as by the reference, to the byte', () => {
  fc.assert(
    fc.property(anyReply, (reply) => {
      expect(lean.encode(reply).toString('hex')).toBe(reference.encode(reply).toString('hex'))
    }),
    { numRuns: 3000 },
  )
})

const anyLogValue = fc.oneof(
  text.map((string_value) => ({ string_value })),
  fc.constant({}),
)
const anyRecord = fc.record({ body: anyLogValue }, { requiredKeys: [] })
const anyBatch = fc
  .array(fc.array(fc.array(anyRecord, { maxLength: 3 }), { maxLength: 2 }), { maxLength: 2 })
  .map((sources) => ({
    resource_logs: sources.map((scopes) => ({ scope_logs: scopes.map((log_records) => ({ log_records })) })),
  }))

test('log records are read as by the reference', () => {
  fc.assert(
    fc.property(anyBatch, foreign, (batch, after) => {
      const message = Buffer.concat([writeLogs(batch), after])
      expect(decodeLogExport(message)).toEqual(entriesOf(readLogs.decodeRequest(message) as WireBatch))
    }),
    { numRuns: 2000 },
  )
})

const decoders = [
  { what: 'requests', decode: (message: Buffer) => lean.decode(message) },
  { what: 'log records', decode: decodeLogExport },
  { what: 'health checks', decode: decodeHealthRequest },
]

/** Good messages with a byte changed, cut off or put in. */
const damaged = fc
  .tuple(fc.oneof(anyRequest, anyBatch.map(writeLogs)), fc.nat(), fc.nat(255), fc.nat(2))
  .map(([message, where, byte, how]) => {
    const at = where % (message.length + 1)
    const [before, after] = [message.subarray(0, at), message.subarray(at)]
    if (how === 0) return before
    return Buffer.concat([before, Buffer.from([byte]), how === 1 ? after : after.subarray(1)])
  })

const codecErrorOf = (decode: (message: Buffer) => unknown, message: Buffer): unknown => {
  try {
    decode(message)
    return undefined
  } catch (thrown) {
    return thrown
  }
}

test.each(decoders)('garbage among $what throws nothing but a CodecError', ({ decode }) => {
  fc.assert(
    fc.property(fc.oneof(bytes(300), damaged), (message) => {
      const thrown = codecErrorOf(decode, message)
      expect(thrown === undefined || thrown instanceof CodecError).toBe(true)
    }),
    { numRuns: 5000 },
  )
})

test('headers that were read can be looked at, whatever they are', () => {
  fc.assert(
    fc.property(damaged, text, (message, name) => {
      const decodable = codecErrorOf((bytes) => lean.decode(bytes), message) === undefined
      const event = decodable ? lean.decode(message) : undefined
      const values = event !== undefined && 'headers' in event ? event.headers(name) : []
      expect(Array.isArray(values)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
