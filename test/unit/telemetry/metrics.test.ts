import { beforeEach, describe, expect, test } from '@jest/globals'
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts'

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

  const calls: readonly { readonly line: string; readonly record: (to: Metrics) => void }[] = [
    {
      line: 'requests_total{route="create",outcome="forwarded"} 1',
      record: (to) => to.add('requests_total', { route: 'create', outcome: 'forwarded' }),
    },
    { line: 'sessions_created_total 1', record: (to) => to.add('sessions_created_total', {}) },
    {
      line: 'output_tokens_total{model="m"} 100',
      record: (to) => to.add('output_tokens_total', { model: 'm' }, 100),
    },
    {
      line: 'store_errors_total{op="begin"} 0',
      record: (to) => to.add('store_errors_total', { op: 'begin' }, 0),
    },
    { line: 'degraded_total{reason="load_timeout"} 1', record: (to) => to.addDegraded('load_timeout') },
    { line: 'removals_pending 6', record: (to) => to.set('removals_pending', {}, 6) },
    {
      line: 'admission_resource_in_use{resource="R1",pod="a:1"} 2',
      record: (to) => to.set('admission_resource_in_use', { resource: 'R1', pod: 'a:1' }, 2),
    },
    {
      line: 'kv_load_duration_seconds_sum{pool="p",result="loaded"} 0.25',
      record: (to) => to.observe('kv_load_duration_seconds', { pool: 'p', result: 'loaded' }, 250),
    },
    {
      line: 'kv_offload_duration_seconds_bucket{le="0.5",pool="p",result="stored"} 1',
      record: (to) => to.observe('kv_offload_duration_seconds', { pool: 'p', result: 'stored' }, 400),
    },
  ]

  test.each(calls)('$line', async ({ line, record }) => {
    expect(await lines(line)).toEqual([])
    record(metrics)
    expect(await lines(line)).toEqual([line])
  })

  test('build_info names the versions of gateway and Node.js', async () => {
    expect(await lines('build_info')).toEqual([`build_info{version="1.2.3",node_version="${process.versions.node}"} 1`])
  })

  test('a counter with closed labels is 0 before its first event', async () => {
    expect(await lines('sessions_deleted_total')).toEqual([
      'sessions_deleted_total{reason="ttl"} 0',
      'sessions_deleted_total{reason="api"} 0',
      'sessions_deleted_total{reason="count"} 0',
      'sessions_deleted_total{reason="memory"} 0',
    ])
  })

  test('negative and non-finite values count as 0', async () => {
    metrics.add('prompt_tokens_total', { model: 'm' }, Number.NaN)
    metrics.add('cached_tokens_total', { model: 'm' }, -1)
    metrics.observe('store_duration_seconds', { op: 'begin' }, Number.POSITIVE_INFINITY)
    expect(await lines('prompt_tokens_total')).toEqual(['prompt_tokens_total{model="m"} 0'])
    expect(await lines('cached_tokens_total')).toEqual(['cached_tokens_total{model="m"} 0'])
    expect(await lines('store_duration_seconds_sum')).toEqual(['store_duration_seconds_sum{op="begin"} 0'])
  })

  /** Ten pods of one rollout. */
  const podsOf = (rollout: number): readonly string[] =>
    Array.from({ length: 10 }, (_, index) => `10.0.${rollout}.${index}:8000`)

  test('after seven rollouts of ten pods only series of the last ten remain', async () => {
    for (let rollout = 0; rollout < 7; rollout += 1) {
      for (const pod of podsOf(rollout)) {
        metrics.add('routing_decisions_total', { policy: 'random', pod })
        metrics.set('admission_resource_in_use', { resource: 'R1', pod }, 1)
      }
      await Promise.all(podsOf(rollout - 1).map((pod) => metrics.forget('pod', pod)))
    }
    for (const name of ['routing_decisions_total', 'admission_resource_in_use']) {
      const pods = (await lines(name)).map((line) => /pod="(.*?)"/.exec(line)?.[1])
      expect(pods).toEqual(podsOf(6))
    }
  })

  test('no series of a forgotten model remains, buckets included', async () => {
    for (const model of ['old', 'new']) {
      metrics.add('output_tokens_total', { model }, 1)
      metrics.observe('ttft_seconds', { cache: 'hit', model }, 1)
    }
    await metrics.forget('model', 'old')
    const kept = [...(await lines('output_tokens_total')), ...(await lines('ttft_seconds'))]
    expect(kept.filter((line) => line.includes('"old"'))).toEqual([])
    expect(kept).toContain('ttft_seconds_count{cache="hit",model="new"} 1')
  })

  test('a reason that is not in the list counts as other', async () => {
    metrics.addDegraded('made-up')
    expect(await lines('degraded_total{reason="other"}')).toEqual(['degraded_total{reason="other"} 1'])
  })

  test('metrics of the process are exported in the text format', async () => {
    const text = await metrics.render()
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
    expect(text).toMatch(/^nodejs_heap_size_used_bytes \d+$/m)
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m)
  })

  test('updates run before each rendering; a failing one stops neither the others nor the rendering', async () => {
    let turns = 0
    metrics.beforeRender(() => {
      throw new Error('broken')
    })
    metrics.beforeRender(() => Promise.reject(new Error('broken')))
    metrics.beforeRender(async () => {
      await Promise.resolve()
      turns += 1
      metrics.set('removals_pending', {}, turns)
    })
    expect(await lines('removals_pending')).toEqual(['removals_pending 1'])
    expect(await lines('removals_pending')).toEqual(['removals_pending 2'])
  })
})
