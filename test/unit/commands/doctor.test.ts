import { describe, expect, test } from '@jest/globals'
import { allChecks } from '../../../src/commands/doctor/checks/all-checks.ts'
import { type ClockReading, readClock } from '../../../src/commands/doctor/clock-reading.ts'
import { readEngineFacts } from '../../../src/commands/doctor/engine-facts.ts'
import type { Facts } from '../../../src/commands/doctor/facts.ts'
import { type Diagnosis, diagnose, renderDiagnosis } from '../../../src/commands/doctor/finding.ts'
import { readGatewayFacts } from '../../../src/commands/doctor/gateway-facts.ts'
import { type Known, known } from '../../../src/commands/doctor/known.ts'
import { unaskedFacts } from '../../support/unasked-facts.ts'

const diagnoseFacts = (facts: Partial<Facts>): Diagnosis => diagnose(allChecks, { ...unaskedFacts, ...facts })

/** `error pods-agree: …` */
const linesOf = (facts: Partial<Facts>): readonly string[] =>
  diagnoseFacts(facts).findings.map(({ severity, check, problem }) => `${severity} ${check}: ${problem}`)

describe('clocks', () => {
  const clock = (of: string, aheadMs: number): ClockReading => ({
    of,
    leastAheadMs: aheadMs - 20,
    mostAheadMs: aheadMs + 980,
  })

  test.each([
    ['agree', [clock('a', 0), clock('b', 900), clock('c', -900)], []],
    [
      'one is ahead',
      [clock('the gateway', 0), clock('Envoy', 10), clock('Redis', 90_000)],
      ['warning clocks: The clock of Redis is 90 s ahead of that of Envoy.'],
    ],
    [
      'one is behind',
      [clock('the gateway', 0), clock('Redis', 5), clock('the engine a:1', -5_000)],
      ['warning clocks: The clock of the engine a:1 is 5 s behind that of the gateway.'],
    ],
  ])('that %s', (_what, clocks, expected) => {
    expect(linesOf({ clocks })).toEqual(expected)
  })

  test('are read from a header with whole seconds, within the time of the question', () => {
    const answer = { status: 200, text: '', date: 'Sat, 28 Nov 2026 14:00:00 GMT' }
    const atMs = Date.parse(answer.date)
    expect(readClock('Envoy', { ...answer, askedMs: atMs - 100, answeredMs: atMs + 50 })).toEqual([
      { of: 'Envoy', leastAheadMs: -50, mostAheadMs: 1_100 },
    ])
    expect(readClock('Envoy', { ...answer, date: undefined, askedMs: 0, answeredMs: 0 })).toEqual([])
  })
})

describe('engines', () => {
  const llama = (build: string, model = 'model', slots = 4) =>
    readEngineFacts({
      models: JSON.stringify({ data: [{ id: model }] }),
      version: '',
      props: JSON.stringify({ build_info: build, total_slots: slots, default_generation_settings: { n_ctx: 4096 } }),
      metrics: '',
    })
  const vllm = (version: string, blockSize: string) =>
    readEngineFacts({
      models: JSON.stringify({
        data: [
          { id: 'm', root: '/m', max_model_len: 1 },
          { id: 'adapter', parent: 'm' },
        ],
      }),
      version: JSON.stringify({ version }),
      props: 'no JSON',
      metrics: `# TYPE\nvllm:cache_config_info{block_size="${blockSize}",cache_dtype="auto"} 1\n`,
    })
  const engines = (...facts: readonly ReturnType<typeof llama>[]) => ({
    engines: known(facts.map((one, index) => ({ pool: 'default', address: `pod${index}:1`, ...one }))),
  })

  test.each([
    ['that are equal', engines(llama('b1'), llama('b1')), []],
    [
      'of other models',
      engines(llama('b1'), llama('b1', 'other')),
      ['error pods-agree: Pods of pool default serve different models: pod0:1: model; pod1:1: other.'],
    ],
    [
      'of other builds and slots',
      engines(llama('b1'), llama('b2'), llama('b1', 'model', 8)),
      [
        'error pods-agree: Pods of pool default differ in build_info: pod0:1, pod2:1: b1; pod1:1: b2.',
        'error pods-agree: Pods of pool default differ in total_slots: pod0:1, pod1:1: 4; pod2:1: 8.',
      ],
    ],
    [
      'of other versions and block sizes of vLLM',
      engines(vllm('0.32.0', '16'), vllm('0.31.0', '32')),
      [
        'error pods-agree: Pods of pool default differ in version: pod0:1: 0.32.0; pod1:1: 0.31.0.',
        'error pods-agree: Pods of pool default differ in block_size: pod0:1: 16; pod1:1: 32.',
      ],
    ],
  ])('%s', (_what, facts, expected) => {
    expect(linesOf(facts)).toEqual(expected)
  })
})

describe('the gateway', () => {
  const page = (changes: object) => {
    const pods = [
      { address: 'a:1', ready: true, inFlight: 0 },
      { address: 'b:1', ready: false, inFlight: 0 },
    ]
    const ready = { ready: true, reasons: [], pools: [{ name: 'default', connector: 'none', pods }], warnings: [] }
    const facts = readGatewayFacts({ ...ready, ...changes })
    return facts === undefined ? unaskedFacts.gateway : known(facts)
  }
  const warning = (kind: string) => ({ kind, subject: 'a:1', text: 'It does.', sinceSeconds: 1 })

  test.each<[string, Known<NonNullable<ReturnType<typeof readGatewayFacts>>>, readonly string[]]>([
    ['a pod is not ready', page({}), ['warning gateway: The pod b:1 of pool default is not ready.']],
    [
      'nothing is ready',
      page({ ready: false, reasons: ['no pod is ready'] }),
      ['error gateway: The gateway is not ready: no pod is ready.'],
    ],
    [
      'an engine reuses nothing',
      page({ pools: [], warnings: [warning('engine_reuses_nothing'), warning('engine_unavailable')] }),
      ['error reuse: engine_reuses_nothing (a:1): It does.'],
    ],
    [
      'a folder is foreign',
      page({ pools: [], warnings: [warning('kv_folder_foreign')] }),
      ['warning gateway-warnings: kv_folder_foreign (a:1): It does.'],
    ],
  ])('%s', (_what, gateway, expected) => {
    expect(linesOf({ gateway })).toEqual(expected)
  })

  test('is not known from another page', () => {
    expect(readGatewayFacts({ ready: true })).toBeUndefined()
  })
})

test.each([
  [{ maxmemoryPolicy: 'noeviction', maxmemoryBytes: 1 }, []],
  [
    { maxmemoryPolicy: 'volatile-ttl', maxmemoryBytes: 0 },
    ['warning redis-eviction: maxmemory-policy of Redis is volatile-ttl, without maxmemory.'],
  ],
  [
    { maxmemoryPolicy: 'allkeys-lru', maxmemoryBytes: 5 },
    ['error redis-eviction: maxmemory-policy of Redis is allkeys-lru, maxmemory 5.'],
  ],
])('a Redis with %j', (redis, expected) => {
  expect(linesOf({ redis: known(redis) })).toEqual(expected)
})

test.each([
  [[], []],
  [['a:1', 'b:2'], ['warning redis-coverage: cluster-require-full-coverage of Redis a:1, b:2 is yes.']],
])('a cluster whose nodes %j need all slots', (nodes, expected) => {
  expect(linesOf({ fullCoverage: known(nodes) })).toEqual(expected)
})

test.each([
  [401, 'invalid_api_key', []],
  [
    503,
    'service_unavailable',
    ['error reaches-gateway: GET /v1/context without a credential gets 503 service_unavailable instead of 401.'],
  ],
])('an Envoy that answers %d to a client without a credential', (status, code, expected) => {
  const outside = known({ context: { status, code }, largeBody: { status, code, bytes: 2_097_152 }, control: [] })
  expect(linesOf({ outside })).toEqual(expected)
})

test('what was found is shown with why and fix, errors first, and what was not checked once for each reason', () => {
  const problem = { problem: 'It is 1.', why: 'It hurts.', fix: 'x: 2' }
  const diagnosis: Diagnosis = {
    findings: [
      { check: 'b', severity: 'warning', ...problem },
      { check: 'a', severity: 'error', ...problem },
    ],
    passed: ['c'],
    notChecked: [
      { check: 'd', why: 'no.' },
      { check: 'e', why: 'no.' },
    ],
  }
  expect(renderDiagnosis(diagnosis).split('\n')).toEqual([
    'error    a: It is 1.',
    '  why: It hurts.',
    '  fix: x: 2',
    '',
    'warning  b: It is 1.',
    '  why: It hurts.',
    '  fix: x: 2',
    '',
    'not checked: d, e',
    '  why: no.',
    '',
    '1 error, 1 warning, 1 check passed',
  ])
})
