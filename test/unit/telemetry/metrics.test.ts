import { beforeEach, describe, expect, test } from '@jest/globals'
import { createMetrics, type LookupResult, type Metrics } from '../../../src/telemetry/metrics.ts'

describe('createMetrics', () => {
  let metrics: Metrics

  beforeEach(() => {
    metrics = createMetrics({ version: '1.2.3' })
  })

  /** The lines of the rendered text that begin with this, without the common prefix. */
  const lines = async (start: string): Promise<readonly string[]> =>
    (await metrics.render())
      .split('\n')
      .filter((line) => line.startsWith(`context_cache_${start}`))
      .map((line) => line.replace('context_cache_', ''))

  const calls: readonly { readonly line: string; readonly tell: (told: Metrics) => void }[] = [
    {
      line: 'requests_total{route="create",outcome="forwarded"} 1',
      tell: (told) => told.requestDecided({ route: 'create', outcome: 'forwarded' }),
    },
    { line: 'lookups_total{result="active"} 1', tell: (told) => told.lookedUp('active') },
    { line: 'sessions_created_total 1', tell: (told) => told.sessionCreated() },
    {
      line: 'sessions_deleted_total{reason="ttl"} 3',
      tell: (told) => told.sessionsDeleted({ reason: 'ttl', count: 3 }),
    },
    {
      line: 'kv_evictions_total{reason="size"} 2',
      tell: (told) => told.kvEvicted({ reason: 'size', count: 2 }),
    },
    { line: 'kv_stored_bytes 7', tell: (told) => told.setKvStoredBytes(7) },
    { line: 'sessions_bytes 8', tell: (told) => told.setSessionsBytes(8) },
    { line: 'sessions_active 4', tell: (told) => told.setSessionsActive(4) },
    { line: 'removals_pending 5', tell: (told) => told.setRemovalsPending(5) },
    { line: 'turns_in_flight 6', tell: (told) => told.setTurnsInFlight(6) },
    { line: 'store_circuit_open 1', tell: (told) => told.setStoreCircuit('open') },
    { line: 'turns_total{outcome="client_left"} 1', tell: (told) => told.turnEnded('client_left') },
    {
      line: 'prompt_tokens_total 100',
      tell: (told) => told.tokensUsed({ promptTokens: 100, cachedTokens: 90 }),
    },
    {
      line: 'cached_tokens_total 90',
      tell: (told) => told.tokensUsed({ promptTokens: 100, cachedTokens: 90 }),
    },
    {
      line: 'kv_load_duration_seconds_sum{result="loaded"} 0.25',
      tell: (told) => told.kvLoadEnded({ result: 'loaded', durationMs: 250 }),
    },
    {
      line: 'kv_offload_duration_seconds_bucket{le="0.5",result="stored"} 1',
      tell: (told) => told.kvOffloadEnded({ result: 'stored', durationMs: 400 }),
    },
    { line: 'degraded_total{reason="load_timeout"} 1', tell: (told) => told.degraded('load_timeout') },
    {
      line: 'store_duration_seconds_count{op="begin"} 1',
      tell: (told) => told.storeOperationEnded({ op: 'begin', durationMs: 1, failed: false }),
    },
    {
      line: 'store_errors_total{op="begin"} 0',
      tell: (told) => told.storeOperationEnded({ op: 'begin', durationMs: 1, failed: false }),
    },
    {
      line: 'store_errors_total{op="begin"} 1',
      tell: (told) => told.storeOperationEnded({ op: 'begin', durationMs: 1, failed: true }),
    },
    { line: 'corrupted_records_total 1', tell: (told) => told.recordCorrupted() },
    {
      line: 'routing_decisions_total{policy="random",pod="a:1"} 1',
      tell: (told) => told.routed({ policy: 'random', pod: 'a:1' }),
    },
    { line: 'ext_proc_streams_active 1', tell: (told) => told.streamOpened() },
    {
      line: 'ext_proc_message_duration_seconds_count{phase="request_headers"} 1',
      tell: (told) => told.messageAnswered({ phase: 'request_headers', durationMs: 2 }),
    },
    { line: 'access_log_malformed_total 1', tell: (told) => told.accessLogMalformed() },
    { line: 'eventloop_lag_seconds_sum 0.05', tell: (told) => told.eventLoopLagged(50) },
  ]

  test.each(calls)('$line', async ({ line, tell }) => {
    expect(await lines(line)).toEqual([])
    tell(metrics)
    expect(await lines(line)).toEqual([line])
  })

  test('says what runs', async () => {
    expect(await lines('build_info')).toEqual([`build_info{version="1.2.3",node_version="${process.versions.node}"} 1`])
  })

  test('counters with closed labels stand at 0 before anything happened', async () => {
    expect(await lines('sessions_deleted_total')).toEqual([
      'sessions_deleted_total{reason="ttl"} 0',
      'sessions_deleted_total{reason="api"} 0',
      'sessions_deleted_total{reason="count"} 0',
      'sessions_deleted_total{reason="memory"} 0',
    ])
  })

  test('gauges go up and down', async () => {
    metrics.streamOpened()
    metrics.streamOpened()
    metrics.streamClosed()
    metrics.setStoreCircuit('open')
    metrics.setStoreCircuit('closed')
    expect(await lines('ext_proc_streams_active')).toEqual(['ext_proc_streams_active 1'])
    expect(await lines('store_circuit_open')).toEqual(['store_circuit_open 0'])
  })

  test('values that make no sense count as nothing, and do not throw', async () => {
    metrics.tokensUsed({ promptTokens: Number.NaN, cachedTokens: -1 })
    metrics.sessionsDeleted({ reason: 'ttl', count: -1 })
    metrics.eventLoopLagged(Number.POSITIVE_INFINITY)
    expect(await lines('prompt_tokens_total')).toEqual(['prompt_tokens_total 0'])
    expect(await lines('cached_tokens_total')).toEqual(['cached_tokens_total 0'])
    expect(await lines('eventloop_lag_seconds_sum')).toEqual(['eventloop_lag_seconds_sum 0'])
  })

  test('a closed label takes no other value', async () => {
    metrics.lookedUp('made-up' as LookupResult)
    expect(await lines('lookups_total{result="other"}')).toEqual(['lookups_total{result="other"} 1'])
  })

  test('an open label takes so many values and no more', async () => {
    for (let host = 0; host < 200; host += 1) metrics.routed({ policy: 'random', pod: `10.0.0.${host}:8000` })
    metrics.routed({ policy: 'random', pod: '10.0.0.7:8000' })
    expect(await lines('routing_decisions_total')).toHaveLength(65)
    expect(await lines('routing_decisions_total{policy="random",pod="other"}')).toEqual([
      'routing_decisions_total{policy="random",pod="other"} 136',
    ])
    expect(await lines('routing_decisions_total{policy="random",pod="10.0.0.7:8000"}')).toEqual([
      'routing_decisions_total{policy="random",pod="10.0.0.7:8000"} 2',
    ])
  })

  test('a very long value is no label', async () => {
    metrics.degraded('x'.repeat(10_000))
    expect(await lines('degraded_total')).toEqual(['degraded_total{reason="other"} 1'])
  })

  test('values from outside are escaped', async () => {
    metrics.degraded('a"b\nc')
    expect(await lines('degraded_total')).toEqual(['degraded_total{reason="a\\"b\\nc"} 1'])
  })

  test('sets what is read before every rendering; one that fails stops neither the others nor the rendering', async () => {
    let turns = 0
    metrics.beforeRender(() => {
      throw new Error('broken')
    })
    metrics.beforeRender(() => Promise.reject(new Error('broken')))
    metrics.beforeRender(async () => {
      await Promise.resolve()
      turns += 1
      metrics.setTurnsInFlight(turns)
    })
    expect(await lines('turns_in_flight')).toEqual(['turns_in_flight 1'])
    expect(await lines('turns_in_flight')).toEqual(['turns_in_flight 2'])
  })

  test('two apps in one process share nothing', async () => {
    createMetrics({ version: '9' }).sessionCreated()
    expect(await lines('sessions_created_total')).toEqual(['sessions_created_total 0'])
  })

  test('names its format', () => {
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  })
})
