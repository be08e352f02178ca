import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import {
  type MetricDefinition,
  metricDefinitions,
  metricPrefix,
  renderMetricsTable,
} from '../../../src/telemetry/metric-definitions.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'

const definitions = Object.entries<MetricDefinition>(metricDefinitions)

describe('metricDefinitions', () => {
  test('docs/metrics.md holds exactly the table of the code', () => {
    const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
    const [, table] = /<!-- metrics -->\n([\s\S]*)\n<!-- \/metrics -->/.exec(page) ?? []
    expect(table).toBe(renderMetricsTable())
  })

  test('every metric of the page exists', () => {
    const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
    const named = [...page.matchAll(/context_cache_([a-z_]+?)(?:_bucket|_sum|_count)?\b/g)].map(([, name]) => name)
    expect(new Set(named)).toEqual(new Set(Object.keys(metricDefinitions)))
  })

  test('every metric is exposed under its name, type and help', async () => {
    const text = await createMetrics({ version: '1' }).render()
    const declared = definitions.flatMap(([name, { type, help }]) => [
      `# HELP ${metricPrefix}${name} ${help}`,
      `# TYPE ${metricPrefix}${name} ${type}`,
    ])
    expect(text.split('\n').filter((line) => line.startsWith('#'))).toEqual(declared)
  })

  test.each(definitions)('%s is named after its kind', (name, { type, buckets }) => {
    expect(name.endsWith('_total')).toBe(type === 'counter')
    expect(name.endsWith('_seconds')).toBe(type === 'histogram')
    expect(buckets !== undefined).toBe(type === 'histogram')
    expect([...(buckets ?? [])].sort((a, b) => a - b)).toEqual(buckets ?? [])
  })
})
