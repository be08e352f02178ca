import { describe, expect, test } from '@jest/globals'
import { encodeGrpcMessage } from '../../../../src/extproc/http2/grpc-status.ts'
import { parseGrpcTimeout } from '../../../../src/extproc/http2/grpc-timeout.ts'
import { createHeaderField } from '../../../../src/extproc/http2/hpack/header-field.ts'
import { HpackDecoder } from '../../../../src/extproc/http2/hpack/hpack-decoder.ts'
import { RequestHeaders } from '../../../../src/extproc/http2/request-headers.ts'
import { trailersBlock } from '../../../../src/extproc/http2/response-headers.ts'

const read = (fields: readonly (readonly [string, string])[]): RequestHeaders => {
  const headers = new RequestHeaders()
  for (const [name, value] of fields) headers.add(createHeaderField(name, value))
  return headers
}

const start = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a/B'],
] as const

describe('the beginning of a request', () => {
  test('what gRPC looks at', () => {
    const headers = read([
      ...start,
      ['content-type', 'application/grpc'],
      ['grpc-encoding', 'gzip'],
      ['grpc-timeout', '1S'],
      ['content-length', '12'],
      ['te', 'trailers'],
      ['x-other', ''],
    ])
    expect(headers.isRequest).toBe(true)
    expect(headers.contentLength).toBe(12)
    expect(headers.head).toEqual({
      method: 'POST',
      path: '/a/B',
      contentType: 'application/grpc',
      encoding: 'gzip',
      timeout: '1S',
    })
  })

  test.each<[string, readonly (readonly [string, string])[]]>([
    ['no method', start.slice(1)],
    ['no scheme', [start[0], start[2]]],
    ['no path', start.slice(0, 2)],
    ['an empty path', [...start.slice(0, 2), [':path', '']]],
    ['two paths', [...start, [':path', '/']]],
    ['a pseudo header that is the response’s', [...start, [':status', '200']]],
    ['a pseudo header behind the others', [start[0], ['x', 'y'], start[1], start[2]]],
    ['a name in upper case', [...start, ['X-a', 'y']]],
    ['no name', [...start, ['', 'y']]],
    ['a header about the connection', [...start, ['connection', 'close']]],
    ['an encoding of the transfer', [...start, ['transfer-encoding', 'chunked']]],
    ['te with more than trailers', [...start, ['te', 'trailers, gzip']]],
    ['a length that is none', [...start, ['content-length', '-1']]],
    ['two lengths', [...start, ['content-length', '1'], ['content-length', '2']]],
  ])('%s is malformed', (_name, fields) => {
    expect(read(fields).isRequest).toBe(false)
  })
})

describe('the end of a request', () => {
  test.each<[string, readonly (readonly [string, string])[], boolean]>([
    ['trailers', [['x-a', 'b']], true],
    ['nothing', [], true],
    ['a pseudo header', [[':path', '/']], false],
    ['a name in upper case', [['X', 'b']], false],
  ])('%s', (_name, fields, isTrailers) => {
    expect(read(fields).isTrailers).toBe(isTrailers)
  })
})

describe('grpc-timeout', () => {
  test.each([
    [undefined, undefined],
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['4S', 4000],
    ['5m', 5],
    ['6000u', 6],
    ['7000000n', 7],
    ['99999999H', 2 ** 31 - 1],
    ['', 'malformed'],
    ['1', 'malformed'],
    ['S', 'malformed'],
    ['-1S', 'malformed'],
    ['1.5S', 'malformed'],
    ['123456789S', 'malformed'],
    ['1s', 'malformed'],
  ])('%s', (value, expected) => {
    expect(parseGrpcTimeout(value)).toBe(expected)
  })
})

describe('grpc-message', () => {
  test.each([
    ['plain text, with signs!', 'plain text, with signs!'],
    ['100%', '100%25'],
    ['a\nb', 'a%0Ab'],
    ['ü', '%C3%BC'],
    ['', ''],
  ])('%s', (message, encoded) => {
    expect(encodeGrpcMessage(message)).toBe(encoded)
  })

  test.each([1, 126, 127, 128, 500, 1024, 5000])('a message of %i characters can be read', (length) => {
    const fields: string[] = []
    const block = trailersBlock({ code: 13, message: 'x'.repeat(length) })
    expect(new HpackDecoder().decode(block, ({ name, value }) => fields.push(name, value))).toBe(true)
    expect(fields).toEqual(['grpc-status', '13', 'grpc-message', 'x'.repeat(Math.min(length, 1024))])
  })
})
