import { describe, expect, test } from '@jest/globals'
import { createAccessLogMethod } from '../../../src/accesslog/access-log-method.ts'
import { field, int, struct } from '../extproc/protobuf-bytes.ts'

const method = createAccessLogMethod({
  service: { endTurn: async () => {}, clientLeft: async () => {} },
  hooks: { entryMalformed: () => {}, fault: () => {} },
})

const logEntry = (...content: readonly Buffer[]): Buffer => field(2, field(1, ...content))

test('the method has the path that Envoy calls, and stays open', () => {
  expect(method.path).toBe('/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs')
  expect(method.longLived).toBe(true)
})

test('the answer at the end is empty', () => {
  expect(method.encode({} as never)).toHaveLength(0)
})

describe('entries on the wire', () => {
  test('a batch', () => {
    expect(method.decode(field(2, field(1), field(1)))).toEqual([{}, {}])
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['only who sends it', field(1, field(2, 'turns'))],
    ['TCP entries', field(3, field(1))],
  ])('%s is an empty batch', (_name, bytes) => {
    expect(method.decode(bytes)).toEqual([])
  })

  test('what is read of an entry', () => {
    const common = field(
      1,
      field(8, int(1, 1), int(2, 2)),
      field(9, int(2, 3)),
      field(13, field(1, field(2, '10.0.0.1'), int(3, 8000))),
      field(17, field(1, field(1, 'ctx'), field(2, struct({ turn: 't', flag: true, n: 2 })))),
      int(24, 1),
      int(33, 6),
    )
    expect(method.decode(logEntry(common, field(4, field(1, int(1, 200)))))).toEqual([
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
                },
              },
            },
          },
          upstream_request_attempt_count: 1,
          access_log_type: 6,
        },
        response: { response_code: { value: 200 } },
      },
    ])
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
    expect(method.decode(logEntry(field(1, field(16, int(number, 1)))))).toEqual([
      { common_properties: { response_flags: { [name]: true } } },
    ])
  })

  test('bytes that are no message throw, for the transport to refuse', () => {
    expect(() => method.decode(Buffer.from([0x12, 0x7f, 0x00]))).toThrow()
  })
})
