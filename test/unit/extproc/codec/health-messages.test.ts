import { describe, expect, test } from '@jest/globals'
import { CodecError } from '../../../../src/extproc/codec/codec-error.ts'
import { decodeHealthRequest, encodeHealthResponse } from '../../../../src/extproc/codec/health-messages.ts'
import { field, int } from '../protobuf-bytes.ts'

describe('health', () => {
  test.each(['', 'readiness', 'ü'])('the service asked for: "%s"', (service) => {
    expect(decodeHealthRequest(Buffer.concat([int(9, 1), field(1, service)]))).toBe(service)
  })

  test('no service', () => {
    expect(decodeHealthRequest(Buffer.alloc(0))).toBe('')
  })

  test('bytes that are no message are refused', () => {
    expect(() => decodeHealthRequest(Buffer.from([0x0a, 0x02]))).toThrow(CodecError)
  })

  test.each([
    ['serving', 1],
    ['not-serving', 2],
    ['service-unknown', 3],
  ] as const)('%s', (status, number) => {
    expect(encodeHealthResponse(status)).toEqual(int(1, number))
  })
})
