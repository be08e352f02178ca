import { describe, expect, test } from '@jest/globals'
import { decodeAccessLogMessage } from '../../../../src/extproc/codec/access-log-message.ts'
import { CodecError } from '../../../../src/extproc/codec/codec-error.ts'
import { decodeHealthRequest, encodeHealthResponse } from '../../../../src/extproc/codec/health-messages.ts'
import { field, int, opening, struct } from '../protobuf-bytes.ts'

const entry = (...common: readonly Buffer[]): Buffer => field(2, field(1, field(1, ...common)))

describe('access log', () => {
  test('what is read of an entry', () => {
    const message = field(
      2,
      field(
        1,
        field(
          1,
          field(8, int(1, 1), int(2, 2)),
          field(9, int(2, 3)),
          field(13, field(1, field(2, '10.0.0.1'), int(3, 8000))),
          field(17, field(1, field(1, 'ctx'), field(2, struct({ turn: 't', flag: true, n: 2, nested: { a: 'b' } })))),
          int(24, 1),
          int(33, 6),
        ),
        field(4, field(1, int(1, 200))),
      ),
    )
    expect(decodeAccessLogMessage(message)).toEqual([
      {
        common_properties: {
          time_to_last_upstream_tx_byte: { seconds: 1, nanos: 2 },
          time_to_first_upstream_rx_byte: { nanos: 3 },
          upstream_remote_address: { socket_address: { address: '10.0.0.1', port_value: 8000 } },
          metadata: {
            filter_metadata: {
              ctx: {
                fields: {
                  turn: { kind: 'stringValue', stringValue: 't' },
                  flag: { kind: 'boolValue', boolValue: true },
                  n: { kind: 'numberValue', numberValue: 2 },
                  nested: { kind: 'structValue' },
                },
              },
            },
          },
          access_log_type: 6,
        },
        response: { response_code: { value: 200 } },
      },
    ])
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['only who sends it', field(1, field(2, 'turns'))],
    ['TCP entries', field(3, field(1))],
  ])('%s is an empty batch', (_name, bytes) => {
    expect(decodeAccessLogMessage(bytes)).toEqual([])
  })

  test.each([
    [2, 'no_healthy_upstream'],
    [3, 'upstream_request_timeout'],
    [4, 'local_reset'],
    [5, 'upstream_remote_reset'],
    [6, 'upstream_connection_failure'],
    [7, 'upstream_connection_termination'],
    [8, 'upstream_overflow'],
    [9, 'no_route_found'],
    [11, 'fault_injected'],
    [15, 'downstream_connection_termination'],
    [16, 'upstream_retry_limit_exceeded'],
    [17, 'stream_idle_timeout'],
    [19, 'downstream_protocol_error'],
    [20, 'upstream_max_stream_duration_reached'],
    [23, 'duration_timeout'],
    [24, 'upstream_protocol_error'],
    [25, 'no_cluster_found'],
    [26, 'overload_manager'],
    [27, 'dns_resolution_failure'],
    [28, 'downstream_remote_reset'],
  ])('response flag %i is %s', (number, name) => {
    expect(decodeAccessLogMessage(entry(field(16, int(number, 1), int(10, 1), int(99, 1))))).toEqual([
      { common_properties: { response_flags: { [name]: true } } },
    ])
  })

  test('names that objects have already are names like others', () => {
    const [read] = decodeAccessLogMessage(
      entry(field(17, field(1, field(1, '__proto__'), field(2, struct({ constructor: 'x' }))))),
    )
    const namespaces = read?.common_properties?.metadata?.filter_metadata ?? {}
    expect(Object.keys(namespaces)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(namespaces)).toBe(Object.prototype)
  })

  test('metadata nested without end is passed over', () => {
    const openings: Buffer[] = []
    let length = 0
    for (let depth = 0; depth < 20_000; depth++) {
      for (const number of [5, 2, 1]) {
        const bytes = opening(number, length)
        openings.push(bytes)
        length += bytes.length
      }
    }
    const nested = field(17, field(1, field(1, 'ctx'), field(2, Buffer.concat(openings.reverse()))))
    expect(decodeAccessLogMessage(entry(nested))).toHaveLength(1)
  })

  test('bytes that are no message are refused', () => {
    expect(() => decodeAccessLogMessage(Buffer.from([0x12, 0x7f, 0x00]))).toThrow(CodecError)
  })
})

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
