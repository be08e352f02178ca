import { describe, expect, test } from '@jest/globals'
import type { ForwardDecision } from '../../../src/context/context-cache-manager.ts'
import { createExtProcCodec, type ExtProcEvent, type Phase, type Reply } from '../../../src/extproc/codec.ts'
import { GatewayError } from '../../../src/openai/gateway-error.ts'
import { field, int, struct } from './protobuf-bytes.ts'

const codec = createExtProcCodec()

const header = (key: string, value: string | Buffer): Buffer => field(1, field(1, key), field(3, value))

const decodeHeaders = (bytes: Buffer): Extract<ExtProcEvent, { kind: 'request_headers' }> => {
  const event = codec.decode(bytes)
  if (event.kind !== 'request_headers') throw new Error(`request_headers expected, not ${event.kind}`)
  return event
}

describe('bytes of a message beside its body are bounded', () => {
  const tiny = Buffer.alloc(100_000, field(1))
  const body = Buffer.alloc(5_000_000, 'a')

  test.each([
    ['a request body', field(4, field(1, body), int(2, 1)), 'request_body'],
    ['a response body', field(5, field(1, body), int(2, 1)), 'response_body'],
    [
      'a body with other fields behind it',
      Buffer.concat([field(4, field(1, body)), field(99, tiny.subarray(50_000))]),
      'request_body',
    ],
  ])('%s may be long', (_name, message, kind) => {
    expect(codec.decode(message).kind).toBe(kind)
  })

  test.each([
    ['headers', field(2, field(1, tiny))],
    ['many headers', Buffer.alloc(100_000, field(2))],
    ['empty bodies in one', field(4, tiny)],
    ['fields behind a body', Buffer.concat([field(4, field(1, body)), field(8, tiny)])],
    ['a body that is not the first field', Buffer.concat([field(2), field(4, field(1, body))])],
    ['a body with a length without an end', Buffer.concat([Buffer.from([0x22, 0xff, 0xff, 0xff, 0xff, 0xff]), tiny])],
  ])('%s', (_name, message) => {
    expect(() => codec.decode(message)).toThrow('beside a body')
  })

  test('a body that claims to be longer than its message is none', () => {
    expect(() => codec.decode(Buffer.concat([Buffer.from('22ffffff7f0affffff7f', 'hex'), tiny]))).toThrow()
  })
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
    ['3', field(11, int(1, 3)), 'buffered_partial'],
    ['4', field(11, int(1, 4)), 'full_duplex_streamed'],
    ['5', field(11, int(1, 5)), 'grpc'],
    ['a mode of the future', field(11, int(1, 77)), 'unknown'],
  ])('body mode from %s', (_name, config, mode) => {
    expect(decodeHeaders(Buffer.concat([field(2), config])).bodyMode).toBe(mode)
  })

  test.each([
    ['no protocol_config', Buffer.alloc(0), false],
    ['an empty one', field(11), false],
    ['one for the request alone', field(11, int(1, 2)), false],
    ['one for both', field(11, int(1, 2), int(2, 1)), true],
    ['a mode of the future', field(11, int(2, 77)), true],
  ])('whether Envoy sends the response, from %s', (_name, config, responseBodySent) => {
    expect(decodeHeaders(Buffer.concat([field(2), config])).responseBodySent).toBe(responseBodySent)
  })

  describe.each([
    ['request_body', 4],
    ['response_body', 5],
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
    expect(event).toMatchObject({ kind: 'response_headers', endOfStream })
    expect(event.kind === 'response_headers' ? event.headers(':status') : []).toEqual(['200'])
  })

  test('values of dynamic metadata are read as lists of texts', () => {
    const list = field(6, field(1, field(3, '10.0.0.1:80')), field(1, field(3, '10.0.0.2')))
    const subset = field(1, field(1, 'subset'), field(2, list))
    const namespaces = [
      field(1, field(1, 'hint'), field(2, subset)),
      field(1, field(1, 'lb'), field(2, struct({ served: '10.0.0.1:80, 10.0.0.2:80', nested: { a: 'b' } }))),
    ]
    const { metadata } = decodeHeaders(Buffer.concat([field(2), field(8, ...namespaces)]))
    expect(metadata?.('hint', 'subset')).toEqual(['10.0.0.1:80', '10.0.0.2'])
    expect(metadata?.('lb', 'served')).toEqual(['10.0.0.1:80', '10.0.0.2:80'])
    expect(metadata?.('lb', 'nested')).toBeUndefined()
    expect(metadata?.('lb', 'toString')).toBeUndefined()
    expect(metadata?.('none', 'subset')).toBeUndefined()
    expect(decodeHeaders(field(2)).metadata?.('lb', 'served')).toBeUndefined()
  })

  test.each([
    ['request trailers', field(6, field(1, header('x-t', '1'))), 'request_trailers'],
    ['response trailers', field(7), 'response_trailers'],
    ['no message at all', Buffer.alloc(0), 'unknown'],
    ['only metadata and attributes', Buffer.concat([field(8), field(9)]), 'unknown'],
    ['a phase of the future', field(99, 'x'), 'unknown'],
  ])('%s', (_name, bytes, kind) => {
    expect(codec.decode(bytes)).toEqual({ kind })
  })

  test.each([
    ['a length beyond the end', Buffer.from([0x12, 0x7f, 0x00])],
    ['a cut varint', Buffer.from([0x12, 0xff])],
    ['a wire type that does not exist', Buffer.from([0x17])],
    ['groups that never end', Buffer.alloc(200_000, 0x0b)],
  ])('%s is refused by an exception', (_name, bytes) => {
    expect(() => codec.decode(bytes)).toThrow()
  })
})

describe('replies', () => {
  test.each<[Phase, Buffer]>([
    ['request_headers', field(1, field(1))],
    ['response_headers', field(2, field(1))],
    ['request_body', field(3, field(1))],
    ['response_body', field(4, field(1))],
    ['request_trailers', field(5)],
    ['response_trailers', field(6)],
  ])('continue at %s', (phase, bytes) => {
    expect(codec.encode({ kind: 'continue', phase })).toEqual(bytes)
  })

  const setHeader = (name: string, value: string | Buffer): Buffer =>
    field(1, field(1, field(1, name), field(3, value)), int(3, 2))

  test('continue at response_headers sets the observer’s headers', () => {
    const setHeaders = { 'x-a': 'b' }
    expect(codec.encode({ kind: 'continue', phase: 'response_headers', setHeaders })).toEqual(
      field(2, field(1, field(2, setHeader('x-a', 'b')))),
    )
  })

  const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const splice = '"cache_salt":"ü漢🦙"'

  const forward: ForwardDecision = {
    kind: 'forward',
    destinations: ['10.0.0.1:8000', '10.0.0.2:8000'],
    path: '/v1/completions',
    requestHeaders: { 'content-length': '7', 'transfer-encoding': 'chunked', 'x-a': everyByte.toString('latin1') },
    splice,
    expectModel: 'm',
    responseHeaders: { 'x-session-id': 'ctx_1', 'x-context-cache': 'none' },
    ticket: 't',
  }

  test.each<[string, Reply, Buffer]>([
    [
      'a forward sets headers as raw bytes, but none that frame messages, with metadata beside them',
      { kind: 'decision', phase: 'request_headers', decision: forward },
      Buffer.concat([
        field(1, field(1, field(2, setHeader('x-a', everyByte), setHeader(':path', '/v1/completions')))),
        field(
          8,
          struct({
            'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000,10.0.0.2:8000' },
            ctx: { splice, model: 'm', turn: 't', headers: 'x-session-id:ctx_1\nx-context-cache:none\n' },
          }),
        ),
      ]),
    ],
    [
      'a passthrough to nowhere is a plain continue',
      { kind: 'decision', phase: 'request_body', decision: { kind: 'passthrough', destinations: [] } },
      field(3, field(1)),
    ],
    [
      'a passthrough may set headers',
      {
        kind: 'decision',
        phase: 'request_headers',
        decision: { kind: 'passthrough', destinations: [], requestHeaders: { 'x-a': 'b' } },
      },
      field(1, field(1, field(2, setHeader('x-a', 'b')))),
    ],
    [
      'a decision that needs nothing else says so',
      { kind: 'decision', phase: 'request_headers', decision: { kind: 'passthrough', destinations: [] }, isLast: true },
      Buffer.concat([field(1, field(1)), field(9, int(2, 2), int(5, 2), int(6, 2))]),
    ],
    [
      'a replay is an immediate response',
      {
        kind: 'decision',
        phase: 'request_headers',
        decision: {
          kind: 'cached-response',
          contentType: 'text/plain',
          body: everyByte,
          headers: { 'x-a': 'b', 'content-length': '9' },
        },
      },
      field(
        7,
        field(1, int(1, 200)),
        field(2, setHeader('content-type', 'text/plain'), setHeader('x-a', 'b')),
        field(3, everyByte),
        field(5, 'ctx_replay'),
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

  test('a rejection at trailers is an immediate response too', () => {
    const decision = { kind: 'reject', error: new GatewayError('session_not_found') } as const
    expect(codec.encode({ kind: 'decision', phase: 'request_trailers', decision }).toString()).toContain(
      '"code":"session_not_found"',
    )
  })
})
