import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type MetricDefinition, metricDefinitions, metricPrefix } from '../../../src/telemetry/metric-definitions.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'

const definitions = Object.entries<MetricDefinition>(metricDefinitions)

describe('metricDefinitions', () => {
  test('docs/metrics.md contains the table of the code', () => {
    const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
    const [, table = ''] = /<!-- metrics -->\n([\s\S]*)\n<!-- \/metrics -->/.exec(page) ?? []
    const rows = definitions.map(([name, { type, labels, help, gateways = 'sum' }]) => {
      const ranges = Object.entries(labels).map(([label, range]) => {
        const values = typeof range === 'string' ? range : range.map((value) => `\`${value}\``).join(', ')
        return `\`${label}\`: ${values}`
      })
      return `| \`${metricPrefix}${name}\` | ${type} | ${gateways} | ${ranges.join('; ') || '–'} | ${help} |`
    })
    expect(table.split('\n').slice(2)).toEqual(rows)
  })

  test('docs/metrics.md names no metric that does not exist', () => {
    const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
    const named = [...page.matchAll(/context_cache_([a-z_]+?)(?:_bucket|_sum|_count)?\b/g)].map(([, name]) => name)
    expect(new Set(named)).toEqual(new Set(Object.keys(metricDefinitions)))
  })

  test('every metric is exported with its name, type and help', async () => {
    const text = await createMetrics({ version: '1' }).render()
    const declared = definitions.flatMap(([name, { type, help }]) => [
      `# HELP ${metricPrefix}${name} ${help}`,
      `# TYPE ${metricPrefix}${name} ${type}`,
    ])
    expect(text.split('\n').filter((line) => /^# \w+ context_cache_/.test(line))).toEqual(declared)
  })

  test.each(definitions)('name and buckets of %s match its type', (name, { type, buckets }) => {
    expect(name.endsWith('_total')).toBe(type === 'counter')
    expect(name.endsWith('_seconds')).toBe(type === 'histogram')
    expect(buckets !== undefined).toBe(type === 'histogram')
    expect([...(buckets ?? [])].sort((a, b) => a - b)).toEqual(buckets ?? [])
  })
})
