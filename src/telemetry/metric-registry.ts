import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createLabelBound } from './bounded-labels.ts'
import { type MetricDefinition, type MetricName, metricDefinitions, metricPrefix } from './metric-definitions.ts'

type LabelValues = Readonly<Record<string, string>>

/** All defined metrics in a registry of their own, with every label kept within its range. */
export interface MetricRegistry {
  readonly contentType: string
  add(name: MetricName, amount: number, labels?: LabelValues): void
  set(name: MetricName, value: number, labels?: LabelValues): void
  observe(name: MetricName, value: number, labels?: LabelValues): void
  render(): Promise<string>
}

export const createMetricRegistry = (): MetricRegistry => {
  const registry = new Registry()
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  const boundsByMetric = new Map<string, ReadonlyMap<string, (value: string) => string>>()

  for (const [name, definition] of Object.entries<MetricDefinition>(metricDefinitions)) {
    const labelNames = Object.keys(definition.labels)
    const settings = { name: `${metricPrefix}${name}`, help: definition.help, labelNames, registers: [registry] }
    boundsByMetric.set(
      name,
      new Map(Object.entries(definition.labels).map(([label, range]) => [label, createLabelBound(range)])),
    )
    switch (definition.type) {
      case 'counter': {
        const counter = new Counter(settings)
        for (const labels of closedCombinations(definition)) counter.inc(labels, 0)
        counters.set(name, counter)
        break
      }
      case 'gauge':
        gauges.set(name, new Gauge(settings))
        break
      case 'histogram':
        histograms.set(name, new Histogram({ ...settings, buckets: [...(definition.buckets ?? [])] }))
        break
    }
  }

  const bounded = (name: MetricName, labels: LabelValues): LabelValues => {
    const bounds = boundsByMetric.get(name)
    return Object.fromEntries(
      Object.entries(labels).map(([label, value]) => [label, bounds?.get(label)?.(value) ?? value]),
    )
  }

  return {
    contentType: registry.contentType,
    add: (name, amount, labels = {}) => counters.get(name)?.inc(bounded(name, labels), amount),
    set: (name, value, labels = {}) => gauges.get(name)?.set(bounded(name, labels), value),
    observe: (name, value, labels = {}) => histograms.get(name)?.observe(bounded(name, labels), value),
    render: () => registry.metrics(),
  }
}

/** Every combination of closed label values: a counter that stands at 0 before its first event can be alerted on. */
const closedCombinations = (definition: MetricDefinition): readonly LabelValues[] => {
  let combinations: readonly LabelValues[] = [{}]
  for (const [label, range] of Object.entries(definition.labels)) {
    if ('atMost' in range) return []
    combinations = combinations.flatMap((labels) => range.map((value) => ({ ...labels, [label]: value })))
  }
  return combinations
}
