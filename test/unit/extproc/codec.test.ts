import { describe, expect, test } from '@jest/globals'
import { createExtProcCodec } from '../../../src/extproc/codec.ts'
import type { ExtProcEvent, Phase, Reply } from '../../../src/extproc/messages.ts'
import { field, int, struct } from './protobuf-bytes.ts'

const codec = createExtProcCodec()

const header = (key: string, value: string | Buffer): Buffer => field(1, field(1, key), field(3, value))

const decodeHeaders = (bytes: Buffer): Extract<ExtProcEvent, { kind: 'request-headers' }> => {
  const event = codec.decode(bytes)
  if (event.kind !== 'request-headers') throw new Error(`request-headers expected, not ${event.kind}`)
  return event
}

test('the method has the path that Envoy calls', () => {
  expect(codec.path).toBe('/envoy.service.ext_proc.v3.ExternalProcessor/Process')
})

describe('events', () => {
  test('request headers are read from raw_value, in latin1, with all values of a name', () => {
    const event = decodeHeaders(
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
      ),
    )
    expect(event.headers(':method')).toEqual(['POST'])
    expect(event.headers('x-a')).toEqual(['1', 'é'])
    expect(event.headers('x-empty')).toEqual([''])
    expect(event.headers('x-text')).toEqual([''])
    expect(event.headers('x-none')).toEqual([])
    expect(event.endOfStream).toBe(false)
  })

  test('request headers without a body say so', () => {
    expect(decodeHeaders(field(2, int(3, 1))).endOfStream).toBe(true)
  })

  test.each([
    ['no protocol_config', Buffer.alloc(0), 'unknown'],
    ['an empty one', field(11), 'none'],
    ['1', field(11, int(1, 1)), 'streamed'],
    ['2', field(11, int(1, 2)), 'buffered'],
    ['3', field(11, int(1, 3)), 'buffered-partial'],
    ['4', field(11, int(1, 4)), 'full-duplex-streamed'],
    ['5', field(11, int(1, 5)), 'grpc'],
    ['a mode of the future', field(11, int(1, 77)), 'unknown'],
  ])('body mode from %s', (_name, config, mode) => {
    expect(decodeHeaders(Buffer.concat([field(2), config])).bodyMode).toBe(mode)
  })

  test.each([
    ['no protocol_config', Buffer.alloc(0), 'unknown'],
    ['an empty one', field(11), 'untold'],
    ['one for the request alone', field(11, int(1, 2)), 'untold'],
    ['one for both', field(11, int(1, 2), int(2, 1)), 'told'],
    ['a mode of the future', field(11, int(2, 77)), 'told'],
  ])('whether the response is told, from %s', (_name, config, answerMode) => {
    expect(decodeHeaders(Buffer.concat([field(2), config])).answerMode).toBe(answerMode)
  })

  describe.each([
    ['request-body', 4],
    ['response-body', 5],
  ] as const)('%s', (kind, number) => {
    test.each([
      ['a whole body', field(number, field(1, 'abc'), int(2, 1)), { body: 'abc', endOfStream: true }],
      ['a piece', field(number, field(1, 'abc')), { body: 'abc', endOfStream: false }],
      ['an empty end', field(number, int(2, 1)), { body: '', endOfStream: true }],
      ['nothing', field(number), { body: '', endOfStream: false }],
    ])('%s', (_name, bytes, { body, endOfStream }) => {
      expect(codec.decode(bytes)).toEqual({ kind, body: Buffer.from(body), endOfStream })
    })
  })

  test.each([
    ['with a body', field(3, field(1, header(':status', '200'))), false],
    ['without one', field(3, field(1, header(':status', '200')), int(3, 1)), true],
  ])('response headers %s', (_name, bytes, endOfStream) => {
    const event = codec.decode(bytes)
    expect(event).toMatchObject({ kind: 'response-headers', endOfStream })
    expect(event.kind === 'response-headers' ? event.headers(':status') : []).toEqual(['200'])
  })

  test.each([
    ['request trailers', field(6, field(1, header('x-t', '1'))), 'request-trailers'],
    ['response trailers', field(7), 'response-trailers'],
    ['no message at all', Buffer.alloc(0), 'unknown'],
    ['only metadata and attributes', Buffer.concat([field(8, 'ab'), field(9)]), 'unknown'],
    ['a phase of the future', field(99, 'x'), 'unknown'],
  ])('%s', (_name, bytes, kind) => {
    expect(codec.decode(bytes)).toEqual({ kind })
  })

  test.each([
    ['a length beyond the end', Buffer.from([0x12, 0x7f, 0x00])],
    ['a cut varint', Buffer.from([0x12, 0xff])],
    ['a wire type that does not exist', Buffer.from([0x17])],
  ])('%s is refused by an exception', (_name, bytes) => {
    expect(() => codec.decode(bytes)).toThrow()
  })
})

describe('replies', () => {
  test.each<[Phase, Buffer]>([
    ['request-headers', field(1, field(1))],
    ['response-headers', field(2, field(1))],
    ['request-body', field(3, field(1))],
    ['response-body', field(4, field(1))],
    ['request-trailers', field(5)],
    ['response-trailers', field(6)],
  ])('continue at %s', (phase, bytes) => {
    expect(codec.encode({ kind: 'continue', phase })).toEqual(bytes)
  })

  test('headers of an answer are set in the reply to them', () => {
    const changes = { setHeaders: { 'x-a': 'b' }, metadata: {} }
    const option = field(1, field(1, field(1, 'x-a'), field(3, 'b')), int(3, 2))
    expect(codec.encode({ kind: 'proceed', phase: 'response-headers', changes })).toEqual(
      field(2, field(1, field(2, option))),
    )
  })

  const setHeader = (name: string, value: string | Buffer): Buffer =>
    field(1, field(1, field(1, name), field(3, value)), int(3, 2))

  test.each<[string, Reply, Buffer]>([
    [
      'headers overwrite, as raw bytes, and metadata stands beside them',
      {
        kind: 'proceed',
        phase: 'request-headers',
        changes: {
          setHeaders: { ':path': '/v1/completions', 'x-a': 'é' },
          metadata: {
            'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' },
            ctx: { headers: { 'x-b': 'c' } },
          },
        },
      },
      Buffer.concat([
        field(1, field(1, field(2, setHeader(':path', '/v1/completions'), setHeader('x-a', Buffer.from([0xe9]))))),
        field(
          8,
          struct({
            'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' },
            ctx: { headers: { 'x-b': 'c' } },
          }),
        ),
      ]),
    ],
    [
      'a proceed without changes is a plain continue',
      { kind: 'proceed', phase: 'request-body', changes: { setHeaders: {}, metadata: {} } },
      field(3, field(1)),
    ],
    [
      'an immediate answer',
      {
        kind: 'immediate',
        answer: { status: 404, headers: { 'x-a': 'b' }, body: Buffer.from('{}'), details: 'ctx_session_not_found' },
      },
      field(
        7,
        field(1, int(1, 404)),
        field(2, setHeader('x-a', 'b')),
        field(3, '{}'),
        field(5, 'ctx_session_not_found'),
      ),
    ],
    [
      'more time, in seconds and nanoseconds',
      { kind: 'extend', milliseconds: 12_345 },
      field(10, int(1, 12), int(2, 345e6)),
    ],
    ['more time, less than a second', { kind: 'extend', milliseconds: 0.5e3 }, field(10, int(1, 0), int(2, 500e6))],
  ])('%s', (_name, reply, bytes) => {
    expect(codec.encode(reply).toString('hex')).toBe(bytes.toString('hex'))
  })
})
