import { Counter, Gauge, Registry } from 'prom-client'
import { createDeferredRecords } from './deferred-records.ts'
import { createLabelledCells, type LabelledCells, type LabelValues } from './labelled-cells.ts'
import { LeanHistogram } from './lean-histogram.ts'
import { type MetricDefinition, type MetricName, metricDefinitions, metricPrefix } from './metric-definitions.ts'

/** All defined metrics in a registry of their own, with every label kept within its range. */
export interface MetricRegistry {
  readonly contentType: string
  add(name: MetricName, amount: number, labels?: LabelValues): void
  set(name: MetricName, value: number, labels?: LabelValues): void
  observe(name: MetricName, value: number, labels?: LabelValues): void
  render(): Promise<string>
}

/** A counter, and what was added since it was last rendered. */
interface LeanCounter {
  readonly counter: Counter
  readonly added: LabelledCells<{ amount: number }>
}

/** A gauge, and what it was last set to. */
interface LeanGauge {
  readonly gauge: Gauge
  readonly values: LabelledCells<{ value: number }>
}

const noLabels: LabelValues = {}

export const createMetricRegistry = (): MetricRegistry => {
  const registry = new Registry()
  const counters = new Map<string, LeanCounter>()
  const gauges = new Map<string, LeanGauge>()
  const histograms = new Map<string, LeanHistogram>()

  for (const [key, definition] of Object.entries<MetricDefinition>(metricDefinitions)) {
    const { help, labels: ranges } = definition
    const name = `${metricPrefix}${key}`
    const settings = { name, help, labelNames: Object.keys(ranges), registers: [registry] }
    switch (definition.type) {
      case 'counter': {
        const counter = new Counter(settings)
        for (const labels of closedCombinations(definition)) counter.inc(labels, 0)
        counters.set(key, { counter, added: createLabelledCells(ranges, () => ({ amount: 0 })) })
        break
      }
      case 'gauge':
        gauges.set(key, { gauge: new Gauge(settings), values: createLabelledCells(ranges, () => ({ value: 0 })) })
        break
      case 'histogram':
        histograms.set(key, new LeanHistogram({ name, help, ranges, buckets: definition.buckets ?? [], registry }))
        break
    }
  }

  const count = ({ counter, added }: LeanCounter): void => {
    for (const [labels, cell] of added.all()) {
      counter.inc({ ...labels }, cell.amount)
      cell.amount = 0
    }
  }

  const show = ({ gauge, values }: LeanGauge): void => {
    for (const [labels, { value }] of values.all()) gauge.set({ ...labels }, value)
  }

  const records = createDeferredRecords((name, value, labels) => {
    const counter = counters.get(name)
    if (counter === undefined) histograms.get(name)?.record(labels, value)
    else counter.added.cell(labels).amount += value
  })

  return {
    contentType: registry.contentType,
    add: (name, amount, labels = noLabels) => records.tell(name, amount, labels),
    set: (name, value, labels = noLabels) => {
      const cell = gauges.get(name)?.values.cell(labels)
      if (cell !== undefined) cell.value = value
    },
    observe: (name, value, labels = noLabels) => records.tell(name, value, labels),
    render: () => {
      records.settle()
      for (const counter of counters.values()) count(counter)
      for (const gauge of gauges.values()) show(gauge)
      return registry.metrics()
    },
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
