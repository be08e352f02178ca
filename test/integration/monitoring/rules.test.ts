import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ownEnvironment } from '../../../playground/paths.ts'
import { type Command, runCommand } from '../../../playground/run-command.ts'
import { alerts, deployedRules, rulesFile } from './deployed-rules.ts'
import { findPromtool } from './find-promtool.ts'

let promtool: string
let folder: string

beforeAll(async () => {
  promtool = await findPromtool()
  folder = await mkdtemp(join(tmpdir(), 'rules-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const run = async (command: Command): Promise<string> => {
  const outcome = await runCommand({ command, env: ownEnvironment() })
  if (!outcome.ok) throw new Error(`${outcome.reason}\n${outcome.stderr}`)
  return outcome.stdout
}

/** Series with their values at each minute, in promtool's notation: `1+2x60` begins with 1 and grows by 2. */
type Series = Readonly<Record<string, string>>

const at = (metric: string, labels = ''): string => `${metric}{namespace="ai",job="ctx-context-cache-gateway"${labels}}`
const of = (metric: string, labels = ''): string => at(`context_cache_${metric}`, labels)

/** Three hours of a gateway with nothing wrong. */
const minutes = 180
const flat = (value: number): string => `${value}x${minutes}`
const grows = (perMinute: number): string => `0+${perMinute}x${minutes}`
const healthy: Series = {
  [at('up', ',instance="a"')]: flat(1),
  [of('build_info')]: flat(1),
  [of('pods', ',pool="default",state="ready"')]: flat(2),
  [of('pods', ',pool="default",state="not_ready"')]: flat(0),
  [of('pod_ready', ',pool="default",pod="p:1"')]: flat(1),
  [of('pod_ready', ',pool="default",pod="q:1"')]: flat(1),
  [of('warnings', ',kind="store_unavailable"')]: flat(0),
  [of('warnings', ',kind="engine_unavailable"')]: flat(0),
  [of('warnings', ',kind="engine_reuses_nothing"')]: flat(0),
  [of('warnings', ',kind="engine_shares_kv"')]: flat(0),
  [of('store_circuit_open')]: flat(0),
  [of('kv_load_duration_seconds_count', ',pool="default",result="resident"')]: grows(60),
  [of('kv_load_duration_seconds_count', ',pool="default",result="empty"')]: grows(40),
  [of('kv_offload_duration_seconds_count', ',pool="default",result="stored"')]: grows(60),
  [of('kv_evictions_total', ',reason="size"')]: grows(6),
  [of('turns_total', ',outcome="completed",model="m"')]: grows(100),
  [of('turns_total', ',outcome="engine_error",model="m"')]: grows(1),
  [of('requests_total', ',route="messages",outcome="forwarded"')]: grows(100),
  [of('requests_total', ',route="messages",outcome="rejected"')]: grows(5),
  [of('requests_total', ',route="messages",outcome="failed"')]: flat(3),
  [of('degraded_total', ',reason="load_timeout"')]: grows(1),
  [of('degraded_total', ',reason="engine_reuses_nothing"')]: grows(50),
  [of('admission_wait_seconds_bucket', ',kind="prefill",outcome="admitted",le="1"')]: grows(50),
  [of('admission_wait_seconds_bucket', ',kind="prefill",outcome="admitted",le="10"')]: grows(50),
  [of('admission_wait_seconds_bucket', ',kind="prefill",outcome="admitted",le="+Inf"')]: grows(50),
  [of('admission_refused_total', ',kind="prefill",reason="full"')]: flat(9),
  [of('admission_leases_expired_total', ',kind="prefill"')]: flat(0),
  [of('removals_pending')]: `${'5 3 0 0 '.repeat(minutes / 4)}0`,
  [of('corrupted_records_total')]: flat(0),
  [of('config_reloads_total', ',result="applied"')]: grows(1),
  [of('config_reloads_total', ',result="refused"')]: flat(2),
  [of('access_log_malformed_total')]: flat(2),
  [of('ext_proc_peers_refused_total', ',reason="certificate"')]: flat(4),
}

/** What is different while something is wrong: in the last hour, or all the time. */
const wrong: Readonly<Record<string, Series | 'nothing is scraped'>> = {
  ContextCacheAbsent: 'nothing is scraped',
  ContextCacheGatewayDown: { [at('up', ',instance="b"')]: flat(0) },
  ContextCacheStoreUnavailable: { [of('store_circuit_open')]: '0x120 1x60' },
  ContextCacheWarning: { [of('warnings', ',kind="engine_shares_kv"')]: flat(1) },
  ContextCacheRecordsCorrupted: { [of('corrupted_records_total')]: grows(1) },
  ContextCacheRemovalsStuck: { [of('removals_pending')]: flat(7) },
  ContextCacheRequestsFail: { [of('requests_total', ',route="messages",outcome="failed"')]: grows(1) },
  ContextCacheReloadRefused: { [of('config_reloads_total', ',result="refused"')]: '_x175 1x5' },
  ContextCacheHitRatioCollapsed: {
    [of('kv_load_duration_seconds_count', ',pool="default",result="resident"')]: `0+60x140 8400x40`,
    [of('kv_load_duration_seconds_count', ',pool="default",result="empty"')]: `0+40x140 5600+100x40`,
  },
  ContextCacheEngineReusesNothing: { [of('warnings', ',kind="engine_reuses_nothing"')]: flat(1) },
  ContextCacheDegraded: { [of('degraded_total', ',reason="load_timeout"')]: grows(20) },
  ContextCacheStoreTooSmall: { [of('kv_evictions_total', ',reason="size"')]: grows(50) },
  ContextCacheNoPodReady: {
    [of('pods', ',pool="default",state="ready"')]: flat(0),
    [of('pod_ready', ',pool="default",pod="p:1"')]: flat(0),
    [of('pod_ready', ',pool="default",pod="q:1"')]: flat(0),
  },
  ContextCachePodNotReady: { [of('pod_ready', ',pool="default",pod="q:1"')]: flat(0) },
  ContextCacheTurnsFail: { [of('turns_total', ',outcome="engine_error",model="m"')]: grows(40) },
  ContextCacheWaitsLong: {
    [of('admission_wait_seconds_bucket', ',kind="prefill",outcome="admitted",le="1"')]: grows(10),
  },
  ContextCacheTurnsRefused: { [of('admission_refused_total', ',kind="prefill",reason="full"')]: grows(3) },
  ContextCacheNoTurnEnds: {
    [of('turns_total', ',outcome="completed",model="m"')]: flat(100),
    [of('turns_total', ',outcome="engine_error",model="m"')]: flat(1),
  },
  ContextCacheAccessLogMalformed: { [of('access_log_malformed_total')]: grows(1) },
  ContextCacheAdmissionLeasesExpired: { [of('admission_leases_expired_total', ',kind="prefill"')]: '_x120 1x60' },
  ContextCachePeersRefused: { [of('ext_proc_peers_refused_total', ',reason="certificate"')]: grows(2) },
}

/** The alerts that fire after so many minutes, where these series are. */
const firing = (given: Series, expected: readonly string[], minute: number) => ({
  interval: '1m',
  input_series: Object.entries(given).map(([series, values]) => ({ series, values })),
  promql_expr_test: [
    {
      expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
      eval_time: `${minute}m`,
      exp_samples: expected.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
    },
  ],
})

const minuteOf: Readonly<Record<string, number>> = { ContextCacheAdmissionLeasesExpired: 125 }

describe('deploy/prometheus/rules.yaml', () => {
  test('is accepted by promtool', async () => {
    const said = await run([promtool, 'check', 'rules', rulesFile])
    expect(said).toContain(`SUCCESS: ${deployedRules.length} rules found`)
  })

  test('has a series for each alert', () => {
    expect(Object.keys(wrong).toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted())
  })

  test('fires the alert of what is wrong and no other, and none where nothing is', async () => {
    const given = [['nothing', healthy] as const, ...Object.entries(wrong)]
    const tests = given.map(([name, series]) => ({
      name: `${name} is wrong`,
      ...firing(
        series === 'nothing is scraped' ? {} : { ...healthy, ...series },
        name === 'nothing' ? [] : [name],
        minuteOf[name] ?? minutes - 1,
      ),
    }))
    const file = join(folder, 'alerts.yaml')
    await writeFile(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }))
    expect(await run([promtool, 'test', 'rules', file])).toContain('SUCCESS')
  })

  test('is explained in docs/operations.md: what each alert means, what to look at, what to do', async () => {
    const page = await readFile(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
    const sections = page.split(/^## /m).slice(1)
    expect(new Set(sections.map((text) => text.split('\n')[0]))).toEqual(new Set(alerts.map(({ alert }) => alert)))
    expect(sections).toHaveLength(alerts.length)
    for (const section of sections)
      expect(section).toMatch(/\n\*\*What it means\.\*\* .+\n\n\*\*What to look at\.\*\* .+\n\n\*\*What to do\.\*\* /)
    for (const { alert, annotations } of alerts)
      expect(annotations.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
  })
})
