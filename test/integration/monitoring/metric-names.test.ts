import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { type MetricDefinition, metricDefinitions } from '../../../src/telemetry/metric-definitions.ts'
import { call, model } from '../support/client.ts'
import { untilTurnsEnd } from '../support/metrics.ts'
import { createdId, prompt, untilStored, use } from '../support/sessions.ts'
import { embeddedPods } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'
import { alerts, deployedRules } from './deployed-rules.ts'
import { metricsIn, problemsIn } from './named-metrics.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

const target = z.looseObject({ expr: z.string(), refId: z.string() })
const panel = z.looseObject({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  description: z.string().optional(),
  datasource: z.object({ uid: z.string() }).optional(),
  fieldConfig: z.looseObject({ defaults: z.looseObject({ unit: z.string() }) }).optional(),
  targets: z.array(target).default([]),
})
const dashboard = z
  .looseObject({
    uid: z.string(),
    schemaVersion: z.int(),
    templating: z.object({ list: z.array(z.looseObject({ name: z.string(), definition: z.string().optional() })) }),
    panels: z.array(panel),
  })
  .parse(JSON.parse(textOf('deploy/grafana/context-cache.json')))
const graphs = dashboard.panels.filter(({ type }) => type !== 'row')

/** In Markdown, the texts in code spans and blocks. */
const codeOf = (page: string): string => [...page.matchAll(/```[\s\S]*?```|`[^`]*`/g)].map(([text]) => text).join('\n')

const expressions: readonly (readonly [string, string])[] = [
  ...graphs.flatMap(({ title, targets }) => targets.map(({ expr }) => [`panel "${title}": ${expr}`, expr] as const)),
  ...dashboard.templating.list.flatMap(({ name, definition }) =>
    definition === undefined ? [] : [[`variable ${name}`, definition] as const],
  ),
  ...deployedRules.map((rule) => ['alert' in rule ? rule.alert : rule.record, rule.expr] as const),
]
const pages = ['README.md', 'docs/metrics.md', 'docs/operations.md', 'docs/presence.md']

describe('metrics in dashboard, rules and docs', () => {
  const stack = useStack({ store: 'redis', pods: embeddedPods({ count: 1 }) })
  let served: string

  beforeAll(async () => {
    const body = { model, prompt: prompt(20), max_tokens: 2 }
    const id = await createdId(stack, { body })
    await untilStored(stack, id, 1)
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
    await use(stack, id, { body: streamed })
    await untilStored(stack, id, 2)
    await call(`${stack.url}/v1/completions`, { headers: { 'x-session-affinity': 'name' }, body })
    await untilTurnsEnd(stack)
    served = (await call(`${stack.gateway().adminUrl}/metrics`)).text
  })

  test.each(expressions)('%s', (_name, expression) => {
    expect(problemsIn(expression)).toEqual([])
  })

  test.each(pages)('%s', (page) => {
    expect(codeOf(textOf(page)).split('\n').flatMap(problemsIn)).toEqual([])
  })

  test('all that they name are served after a run, with the labels by which they are asked', () => {
    const texts = [...expressions.map(([, text]) => text), ...pages.map((page) => codeOf(textOf(page)))]
    const named = new Set(texts.flatMap(metricsIn).map(({ name }) => name))
    const declared = new Set([...served.matchAll(/^# TYPE context_cache_(\w+) /gm)].map(([, name]) => name))
    expect([...named].filter((name) => !declared.has(name))).toEqual([])

    const definitions: Readonly<Record<string, MetricDefinition>> = metricDefinitions
    const series = [...served.matchAll(/^context_cache_(\w+?)(?:_bucket|_count|_sum)?(?:\{(.*)\})? \S+$/gm)]
    const seen = new Set<string>()
    for (const [, name = '', labels = ''] of series) {
      const given = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== 'le')
      if (definitions[name] === undefined) continue
      seen.add(name)
      expect([name, new Set(given)]).toEqual([name, new Set(Object.keys(definitions[name].labels))])
    }
    // What only a fault, a limit or admission control brings.
    const rare =
      /^(?:degraded|hits_not_reused|store_errors|config_reloads|kv_evictions|response_cache|admission_(?!waiting)|ext_proc_peers)/
    expect([...named].filter((name) => !seen.has(name) && !rare.test(name))).toEqual([])
    expect([...served.matchAll(/^(?:process_resident_memory_bytes|nodejs_eventloop_lag_p99_seconds) /gm)]).toHaveLength(
      2,
    )
  })

  test('the dashboard says what each panel shows, in a unit, of the chosen gateways', () => {
    expect(new Set(graphs.map(({ id }) => id)).size).toBe(graphs.length)
    for (const { title, description = '', fieldConfig, datasource, targets } of graphs) {
      expect([title, description]).toEqual([title, expect.stringMatching(/^.{10,}\.$/s)])
      expect([title, fieldConfig?.defaults.unit]).toEqual([title, expect.any(String)])
      expect(datasource?.uid).toBe(['$', '{datasource}'].join(''))
      for (const { expr } of targets) expect(expr).toContain('{namespace=~"$namespace", job=~"$job"')
      for (const [name] of description.matchAll(/ContextCache\w+/g))
        expect(alerts.map(({ alert }) => alert)).toContain(name)
    }
  })
})

describe('the check of names', () => {
  test.each([
    ['rate(context_cache_turn_total[5m])', 'turn_total does not exist'],
    ['context_cache_turns_total{result="a"}', 'turns_total has no label result'],
    ['context_cache_turns_total{outcome=~"completed|lost"}', 'turns_total never has outcome="lost"'],
    ['context_cache_turns_total_count', 'turns_total_count is no series of a counter'],
    ['sum by (pod) (context_cache_pods)', 'nothing here has the label pod'],
  ])('finds what is wrong in %s', (text, problem) => {
    expect(problemsIn(text)).toEqual([problem])
  })
})
