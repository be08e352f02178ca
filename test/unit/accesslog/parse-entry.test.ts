import { describe, expect, test } from '@jest/globals'
import { type ParsedEntry, parseEntry } from '../../../src/accesslog/parse-entry.ts'
import type { WireCommon, WireEntry, WireStruct, WireValue } from '../../../src/accesslog/wire.ts'
import type { EndedTurn } from '../../../src/context/context-service.ts'

const text = (stringValue: string): WireValue => ({ kind: 'stringValue', stringValue })
const number = (numberValue: number): WireValue => ({ kind: 'numberValue', numberValue })
const bool = (boolValue: boolean): WireValue => ({ kind: 'boolValue', boolValue })

const metadata = (namespaces: Readonly<Record<string, WireStruct['fields']>>): WireCommon => ({
  metadata: {
    filter_metadata: Object.fromEntries(
      Object.entries(namespaces).map(([name, fields]) => [name, fields === undefined ? {} : { fields }]),
    ),
  },
})

const ticket = { ctx: { turn: text('t1') } }

const unanswered: WireCommon = {
  time_to_last_upstream_tx_byte: { nanos: 1_000_000 },
  upstream_remote_address: { socket_address: { address: '10.0.0.1', port_value: 8000 } },
}

const served: WireCommon = { ...unanswered, time_to_first_upstream_rx_byte: { nanos: 3_500_000 } }

const left: WireCommon = { response_flags: { downstream_connection_termination: true } }

const keyOf = (value: string): WireEntry['request'] & object => ({
  request_headers: { 'x-context-request-key': value },
})
const key = keyOf('k1')

const address = (host: string, port: number): WireCommon => ({
  ...served,
  upstream_remote_address: { socket_address: { address: host, port_value: port } },
})

const entry = (common: WireCommon, response: WireEntry['response'] = { response_code: { value: 200 } }): WireEntry => ({
  common_properties: { ...metadata(ticket), ...common },
  response,
})

const turnOf = (parsed: ParsedEntry): EndedTurn => {
  if (parsed.kind !== 'turn') throw new Error(`turn expected, not ${parsed.kind}`)
  return parsed.turn
}

test('a turn that went well', () => {
  expect(turnOf(parseEntry(entry(served)))).toEqual({
    ticket: 't1',
    status: 200,
    complete: true,
    clientLeft: false,
    upstreamFailed: false,
    servedBy: '10.0.0.1:8000',
    usage: undefined,
    firstByteMs: 2.5,
  })
})

describe('entries that are no end of a turn', () => {
  test.each<[string, WireEntry, ParsedEntry['kind']]>([
    ['an empty entry', {}, 'other'],
    ['no metadata', { common_properties: served }, 'other'],
    ['metadata of others', { common_properties: metadata({ usage: {} }) }, 'other'],
    ['no ticket', { common_properties: metadata({ ctx: { splice: text('x') } }) }, 'other'],
    ['a namespace without fields', { common_properties: metadata({ ctx: undefined }) }, 'other'],
    ['the start of a request', entry({ ...served, access_log_type: 4 }), 'other'],
    ['in between', entry({ ...served, access_log_type: 5 }), 'other'],
    ['the end of a request', entry({ ...served, access_log_type: 6 }), 'turn'],
    ['an Envoy that does not tell', entry({ ...served, access_log_type: 0 }), 'turn'],
    ['a ticket that is a number', { common_properties: metadata({ ctx: { turn: number(1) } }) }, 'malformed'],
    ['a client that left before', { common_properties: left, request: key }, 'left'],
    ['a client that left, without the request’s key', { common_properties: left }, 'other'],
    ['a client that left, with an empty key', { common_properties: left, request: keyOf('') }, 'other'],
    ['a client that left in between', { common_properties: { ...left, access_log_type: 5 }, request: key }, 'other'],
    ['a request that nobody left', { common_properties: served, request: key }, 'other'],
    ['a client that left a turn', { ...entry({ ...served, ...left }), request: key }, 'turn'],
    ['an empty ticket', { common_properties: metadata({ ctx: { turn: text('') } }) }, 'malformed'],
  ])('%s', (_name, wire, kind) => {
    expect(parseEntry(wire).kind).toBe(kind)
  })
})

test('a client that left before is told of by the key of its request', () => {
  expect(parseEntry({ common_properties: left, request: key })).toEqual({ kind: 'left', requestKey: 'k1' })
})

describe('response flags', () => {
  type Said = Pick<EndedTurn, 'complete' | 'clientLeft' | 'upstreamFailed'>
  const client: Said = { complete: false, clientLeft: true, upstreamFailed: false }
  const upstream: Said = { complete: false, clientLeft: false, upstreamFailed: true }
  const gateway: Said = { complete: false, clientLeft: false, upstreamFailed: false }

  test.each<[string, Said]>([
    ['downstream_connection_termination', client],
    ['downstream_remote_reset', client],
    ['no_healthy_upstream', upstream],
    ['upstream_request_timeout', upstream],
    ['upstream_remote_reset', upstream],
    ['upstream_connection_failure', upstream],
    ['upstream_connection_termination', upstream],
    ['upstream_overflow', upstream],
    ['upstream_retry_limit_exceeded', upstream],
    ['upstream_max_stream_duration_reached', upstream],
    ['upstream_protocol_error', upstream],
    ['dns_resolution_failure', upstream],
    ['local_reset', gateway],
    ['no_route_found', gateway],
    ['fault_injected', gateway],
    ['stream_idle_timeout', gateway],
    ['downstream_protocol_error', gateway],
    ['duration_timeout', gateway],
    ['no_cluster_found', gateway],
    ['overload_manager', gateway],
  ])('%s', (flag, said) => {
    const turn = turnOf(parseEntry(entry({ ...served, response_flags: { [flag]: true } })))
    expect(turn).toMatchObject(said)
  })

  test('a flag that is not raised says nothing', () => {
    const flags = { upstream_remote_reset: false, downstream_remote_reset: false }
    expect(turnOf(parseEntry(entry({ ...served, response_flags: flags }))).complete).toBe(true)
  })
})

describe('status', () => {
  test.each([
    ['none was sent', {}, 0, false],
    ['an empty one', { response_code: {} }, 0, false],
    ['0', { response_code: { value: 0 } }, 0, false],
    ['200', { response_code: { value: 200 } }, 200, true],
    ['an error that arrived whole', { response_code: { value: 500 } }, 500, true],
  ])('%s', (_name, response, status, complete) => {
    expect(turnOf(parseEntry(entry(served, response)))).toMatchObject({ status, complete })
  })
})

describe('streamed answers are whole when their end was seen in them', () => {
  test.each<[string, WireStruct['fields'], boolean]>([
    ['no stream', {}, true],
    ['a stream with its end', { sse: bool(true), done: bool(true) }, true],
    ['a stream without its end', { sse: bool(true) }, false],
    ['a stream whose end is denied', { sse: bool(true), done: bool(false) }, false],
    ['a stream with an error event', { sse: bool(true), done: bool(true), failed: bool(true) }, false],
    ['flags as text', { sse: text('1'), done: text('1') }, true],
    ['flags as text, no end', { sse: text('1'), done: text('0') }, false],
    ['flags as words', { sse: text('true'), done: text('true'), failed: text('true') }, false],
    ['flags as numbers', { sse: number(1), done: number(1), failed: number(0) }, true],
    ['no stream, whatever else is said', { done: bool(false), failed: bool(true) }, true],
  ])('%s', (_name, stream, complete) => {
    const notes = metadata({ ...ticket, stream })
    expect(turnOf(parseEntry(entry({ ...served, ...notes }))).complete).toBe(complete)
  })
})

describe('the pod that served', () => {
  test.each<[string, WireCommon, string | undefined]>([
    ['IPv4', served, '10.0.0.1:8000'],
    ['IPv6', address('fd00::1', 8000), '[fd00::1]:8000'],
    ['no answer came from it', unanswered, undefined],
    ['no address', { ...served, upstream_remote_address: {} }, undefined],
    ['no host', address('', 8000), undefined],
    ['no port', address('10.0.0.1', 0), undefined],
    ['no such port', address('10.0.0.1', 65_536), undefined],
  ])('%s', (_name, common, pod) => {
    expect(turnOf(parseEntry(entry(common))).servedBy).toBe(pod)
  })
})

describe('usage', () => {
  test.each<[string, WireStruct['fields'], EndedTurn['usage']]>([
    ['none', {}, undefined],
    [
      'all three',
      { prompt_tokens: number(10), output_tokens: number(5), cached_tokens: number(7) },
      { promptTokens: 10, outputTokens: 5, cachedTokens: 7 },
    ],
    ['some', { prompt_tokens: number(10) }, { promptTokens: 10, outputTokens: 0, cachedTokens: 0 }],
    ['zero', { cached_tokens: number(0) }, { promptTokens: 0, outputTokens: 0, cachedTokens: 0 }],
    ['text', { prompt_tokens: text('10') }, undefined],
    ['negative', { prompt_tokens: number(-1) }, undefined],
    ['a fraction', { prompt_tokens: number(1.5) }, undefined],
    ['no number', { prompt_tokens: number(Number.NaN), output_tokens: number(Number.POSITIVE_INFINITY) }, undefined],
  ])('%s', (_name, usage, expected) => {
    const notes = metadata({ ...ticket, usage })
    expect(turnOf(parseEntry(entry({ ...served, ...notes }))).usage).toEqual(expected)
  })
})

describe('time to the first byte', () => {
  test.each<[string, WireCommon, number | undefined]>([
    ['both times', served, 2.5],
    ['seconds', { ...served, time_to_first_upstream_rx_byte: { seconds: 2 } }, 1999],
    ['no answer', unanswered, undefined],
    [
      'an answer before the end of the request',
      { ...served, time_to_last_upstream_tx_byte: { seconds: 9 } },
      undefined,
    ],
    ['the request was not sent whole', { time_to_first_upstream_rx_byte: { seconds: 2 } }, undefined],
  ])('%s', (_name, common, expected) => {
    expect(turnOf(parseEntry(entry(common))).firstByteMs).toBe(expected)
  })
})
