import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { manifestsOf, root, useChart } from './use-chart.ts'

const { folder, render, expectValid } = useChart()
const base = ['--set', 'engines.selector.app=vllm', '--set', 'redis.existingSecret=redis-url']

describe("the chart's monitoring", () => {
  const kindsOfMonitoring = [
    'ServiceMonitor',
    'PrometheusRule',
    'GrafanaDashboard',
    'ConfigMap/ctx-context-cache-gateway-dashboard',
  ]
  const prometheusOperator = ['ServiceMonitor', 'PrometheusRule'].map((kind) => `monitoring.coreos.com/v1/${kind}`)
  const grafanaOperator = 'grafana.integreatly.org/v1beta1/GrafanaDashboard'

  test.each([
    ['without operators', [], []],
    ['with the operator of Prometheus', prometheusOperator, [0, 1, 3]],
    ['with the operator of Grafana', [grafanaOperator], [2]],
    ['with both', [...prometheusOperator, grafanaOperator], [0, 1, 2]],
  ])('a cluster %s gets what these need', async (_name, versions, expected) => {
    const file = join(folder(), 'monitoring.yaml')
    const text = await render(...base, ...versions.flatMap((version) => ['--api-versions', version]))
    await writeFile(file, text)
    await expectValid(file)
    const kinds = manifestsOf(text).flatMap(({ kind, metadata }) => [kind, `${kind}/${metadata.name}`])
    expect(kindsOfMonitoring.filter((kind) => kinds.includes(kind))).toEqual(
      expected.map((index) => kindsOfMonitoring[index]),
    )
  })

  test('alerts and dashboard are those of deploy, whole', async () => {
    const rules = parse(await readFile(join(root, 'deploy/prometheus/rules.yaml'), 'utf8'))
    const dashboard = await readFile(join(root, 'deploy/grafana/context-cache.json'), 'utf8')
    const flags = [...base, '--set', 'prometheusRule.enabled=true,grafanaDashboard.enabled=true']

    const bySidecar = manifestsOf(await render(...flags))
    expect(bySidecar.find(({ kind }) => kind === 'PrometheusRule')).toMatchObject({ spec: rules })
    const configMap = bySidecar.find(({ metadata }) => metadata.name === 'ctx-context-cache-gateway-dashboard')
    expect(configMap).toMatchObject({ metadata: { labels: { grafana_dashboard: '1' } } })
    expect(JSON.parse(configMap?.data?.['context-cache.json'] ?? '')).toEqual(JSON.parse(dashboard))

    const byOperator = manifestsOf(await render(...flags, '--api-versions', grafanaOperator))
    const spec = z
      .object({ json: z.string() })
      .parse(byOperator.find(({ kind }) => kind === 'GrafanaDashboard')?.['spec'])
    expect(JSON.parse(spec.json)).toEqual(JSON.parse(dashboard))
  })
})
