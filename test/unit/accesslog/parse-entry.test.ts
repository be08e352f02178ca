import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'
import { type ParsedEntry, parseEntry } from '../../../src/accesslog/parse-entry.ts'
import type { EndedTurn } from '../../../src/context/context-cache-manager.ts'
import { usedBytes } from '../../support/used-bytes.ts'
import { answered, entryOf, type Said, separator } from './log-entries.ts'

const turnOf = (said: Said): EndedTurn => {
  const parsed = parseEntry(entryOf({ ...answered, ...said }))
  if (parsed.kind !== 'turn') throw new Error(`turn expected, not ${parsed.kind}`)
  return parsed.turn
}

test('a completed turn is read with all its fields', () => {
  expect(turnOf({})).toEqual({
    ticket: 't1',
    status: 200,
    complete: true,
    clientDisconnected: false,
    upstreamFailed: false,
    servedBy: '10.0.0.1:8000',
    usage: undefined,
    ttfbMs: 1002.5,
    isStream: false,
  })
})

test('the address of a pod does not keep its entry in memory', () => {
  const usage = JSON.stringify({ note: 'x'.repeat(64 * 1024) })
  const before = usedBytes()

  const addresses = Array.from({ length: 256 }, (_, index) => turnOf({ usage, requestKey: `key-${index}` }).servedBy)

  expect(usedBytes() - before).toBeLessThan(4 * 1024 * 1024)
  expect(addresses).toHaveLength(256)
})

const text = readFileSync(new URL('../../../envoy.yaml', import.meta.url), 'utf8')
const [manager] = parse(text).static_resources.listeners[0].filter_chains[0].filters

const inEnvoyGateway = (): unknown => {
  const file = new URL('../../../deploy/envoy-gateway/context-cache.yaml', import.meta.url)
  const proxy = parseAllDocuments(readFileSync(file, 'utf8'))
    .map((document) => document.toJS())
    .find(({ kind }) => kind === 'EnvoyProxy')
  return proxy.spec.telemetry.accessLog.settings[0].format.text
}

test.each([
  ['envoy.yaml', () => manager.typed_config.access_log[0].typed_config.body.string_value],
  ['the EnvoyProxy of Envoy Gateway', inEnvoyGateway],
])('%s writes the fields that are read', (_name, written) => {
  expect(written()).toBe(
    entryOf({
      ticket: '%DYNAMIC_METADATA(ctx:turn)%',
      requestKey: '%REQ(x-context-request-key)%',
      status: '%RESPONSE_CODE%',
      flags: '%RESPONSE_FLAGS%',
      upstreamAddress: '%UPSTREAM_REMOTE_ADDRESS%',
      sentUs: '%COMMON_DURATION(DS_RX_BEG:US_TX_END:us)%',
      answeredUs: '%COMMON_DURATION(DS_RX_BEG:US_RX_BODY_BEG:us)%',
      stream: '%DYNAMIC_METADATA(answer:stream)%',
      usage: '%DYNAMIC_METADATA(answer:usage)%',
      timings: '%DYNAMIC_METADATA(answer:timings)%',
    }),
  )
})

test('envoy.yaml overwrites the request key that a client sends', () => {
  const [mutation] = manager.typed_config.early_header_mutation_extensions
  expect(mutation.typed_config.mutations).toContainEqual({
    append: {
      header: { key: 'x-context-request-key', value: '%UNIQUE_ID%' },
      append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
    },
  })
})

describe('the kind of an entry', () => {
  test.each<[string, string, ParsedEntry['kind']]>([
    ['an entry without a text', '', 'other'],
    ['no field', entryOf({}), 'other'],
    ['no ticket', entryOf({ ...answered, ticket: '-' }), 'other'],
    ['an empty ticket', entryOf({ ...answered, ticket: '' }), 'other'],
    ['a client that left before', entryOf({ flags: 'DC', requestKey: 'k1' }), 'disconnected'],
    ['a client that left, without the request’s key', entryOf({ flags: 'DC' }), 'other'],
    ['a client that left, with an empty key', entryOf({ flags: 'DC', requestKey: '' }), 'other'],
    ['a request without a disconnect', entryOf({ requestKey: 'k1', status: '200' }), 'other'],
    ['a client that left a turn', entryOf({ ...answered, flags: 'DC', requestKey: 'k1' }), 'turn'],
    ['too few parts', entryOf(answered).slice(entryOf(answered).indexOf(separator) + 1), 'malformed'],
  ])('%s', (_name, entry, kind) => {
    expect(parseEntry(entry).kind).toBe(kind)
  })
})

test('a ticket may contain the separator', () => {
  const ticket = `2 5\nmodel${separator}${separator}x`
  expect(turnOf({ ticket })).toMatchObject({ ticket, status: 200, complete: true })
})

test('a client that disconnected early is reported by its request key', () => {
  expect(parseEntry(entryOf({ flags: 'DR', requestKey: 'k1' }))).toEqual({ kind: 'disconnected', requestKey: 'k1' })
})

describe('response flags', () => {
  type Told = Pick<EndedTurn, 'complete' | 'clientDisconnected' | 'upstreamFailed'>
  const client: Told = { complete: false, clientDisconnected: true, upstreamFailed: false }
  const upstream: Told = { complete: false, clientDisconnected: false, upstreamFailed: true }
  const gateway: Told = { complete: false, clientDisconnected: false, upstreamFailed: false }
  const harmless: Told = { complete: true, clientDisconnected: false, upstreamFailed: false }

  test.each<[string, string, Told]>([
    ['downstream connection termination', 'DC', client],
    ['downstream remote reset', 'DR', client],
    ['no healthy upstream', 'UH', upstream],
    ['upstream request timeout', 'UT', gateway],
    ['upstream remote reset', 'UR', upstream],
    ['upstream connection failure', 'UF', upstream],
    ['upstream connection termination', 'UC', upstream],
    ['upstream overflow', 'UO', upstream],
    ['upstream retry limit exceeded', 'URX', upstream],
    ['upstream max stream duration reached', 'UMSDR', gateway],
    ['upstream protocol error', 'UPE', upstream],
    ['DNS resolution failure', 'DF', upstream],
    ['local reset', 'LR', gateway],
    ['no route found', 'NR', gateway],
    ['fault injected', 'FI', gateway],
    ['stream idle timeout', 'SI', gateway],
    ['downstream protocol error', 'DPE', gateway],
    ['duration timeout', 'DT', gateway],
    ['no cluster found', 'NC', gateway],
    ['overload manager', 'OM', gateway],
    ['one that says nothing of the answer', 'RL', harmless],
    ['one that is not known', 'NEW', harmless],
    ['several', 'UF,URX', upstream],
    ['several with the client’s', 'UPE,DC', { complete: false, clientDisconnected: true, upstreamFailed: true }],
  ])('%s (%s)', (_name, flags, told) => {
    expect(turnOf({ flags })).toMatchObject(told)
  })
})

describe('status', () => {
  test.each([
    ['none was sent', '0', 0, false],
    ['no status', '-', 0, false],
    ['no number', '2OO', 0, false],
    ['200', '200', 200, true],
    ['an error that arrived whole', '500', 500, true],
  ])('%s', (_name, written, status, complete) => {
    expect(turnOf({ status: written })).toMatchObject({ status, complete })
  })
})

describe('a streamed answer is complete when its end was seen', () => {
  test.each([
    ['no stream', '-', true],
    ['a stream with its end', 'done', true],
    ['a stream without its end', 'cut', false],
    ['a stream with an error event', 'failed', false],
    ['a word that is not known', 'x', false],
  ])('%s', (_name, stream, complete) => {
    expect(turnOf({ stream }).complete).toBe(complete)
  })
})

describe('the pod that served', () => {
  test.each<[string, Said, string | undefined]>([
    ['IPv4', {}, '10.0.0.1:8000'],
    ['IPv6', { upstreamAddress: '[fd00::1]:8000' }, '[fd00::1]:8000'],
    ['no answer came from it', { answeredUs: '-' }, undefined],
    ['no address', { upstreamAddress: '-' }, undefined],
    ['no host', { upstreamAddress: ':8000' }, undefined],
    ['no port', { upstreamAddress: '10.0.0.1:0' }, undefined],
    ['no such port', { upstreamAddress: '10.0.0.1:65536' }, undefined],
    ['a Unix socket', { upstreamAddress: '/run/pod.sock' }, undefined],
  ])('%s', (_name, said, pod) => {
    expect(turnOf(said).servedBy).toBe(pod)
  })
})

describe('usage', () => {
  const counted = { promptTokens: 10, outputTokens: 5, cachedTokens: 7 }

  test.each<[string, Said, EndedTurn['usage']]>([
    ['none', {}, undefined],
    [
      'of completions',
      { usage: '{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":7}}' },
      counted,
    ],
    [
      'of responses',
      { usage: '{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":7}}' },
      counted,
    ],
    [
      'of Anthropic, whose input excludes the cached tokens',
      {
        usage: '{"input_tokens":2,"cache_read_input_tokens":7,"cache_creation_input_tokens":1,"output_tokens":5}',
      },
      counted,
    ],
    [
      'of the start and of the end of its streams',
      {
        usage:
          '[{"input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1},{"output_tokens":5,"input_tokens":null}]',
      },
      counted,
    ],
    [
      'of Anthropic without a cache',
      { usage: '{"input_tokens":10,"output_tokens":5}' },
      { promptTokens: 10, outputTokens: 5 },
    ],
    ['without details', { usage: '{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":7}' }, counted],
    ['some', { usage: '{"prompt_tokens":10}' }, { promptTokens: 10, outputTokens: 0 }],
    ['text', { usage: '{"prompt_tokens":"10"}' }, undefined],
    ['negative', { usage: '{"prompt_tokens":-1}' }, undefined],
    ['a fraction', { usage: '{"prompt_tokens":1.5}' }, undefined],
    ['beyond all numbers', { usage: '{"prompt_tokens":1e999}' }, undefined],
    ['no JSON', { usage: '{"prompt_tokens":10' }, undefined],
    ['no object', { usage: 'null' }, undefined],
    ['timings', { timings: '{"prompt_n":3,"cache_n":7,"predicted_n":5}' }, counted],
    [
      'timings of an engine that does not tell what it reused',
      { timings: '{"prompt_n":3,"predicted_n":5}' },
      { promptTokens: 3, outputTokens: 5 },
    ],
    ['timings of half a turn', { timings: '{"prompt_n":3}' }, undefined],
    [
      'usage before timings',
      {
        usage: '{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":7}',
        timings: '{"prompt_n":1,"predicted_n":1}',
      },
      counted,
    ],
  ])('%s', (_name, said, expected) => {
    expect(turnOf(said).usage).toEqual(expected)
  })
})

describe('time to the first byte', () => {
  test.each<[string, Said, number | undefined]>([
    ['both times', {}, 1002.5],
    ['no answer', { answeredUs: '-' }, undefined],
    ['an answer before the end of the request', { sentUs: '2000000' }, undefined],
    ['the request was not sent whole', { sentUs: '-' }, undefined],
    ['times that are no numbers', { sentUs: 'x' }, undefined],
    ['a time before the request', { sentUs: '-5' }, undefined],
  ])('%s', (_name, said, expected) => {
    expect(turnOf(said).ttfbMs).toBe(expected)
  })
})

test('an entry of another version’s envoy.yaml says so', () => {
  const reason = "no usage, timings: access_log of Envoy is not the one of this version's envoy.yaml"
  const entry = entryOf(answered).replace('usage=', 'used=').replace('timings=', '')
  expect(parseEntry(entry)).toEqual({ kind: 'malformed', reason })
})

test('fields that a later version adds, and another order, change nothing', () => {
  const [first, ...others] = entryOf(answered).split(separator)
  const ticket = others.pop()
  expect(parseEntry(['new=1', ...others, first, ticket].join(separator))).toEqual(parseEntry(entryOf(answered)))
})
