import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import {
  type LabelsOf,
  type LabelValue,
  type MetricDefinition,
  type MetricNameOf,
  metricDefinitions,
  metricPrefix,
} from './metric-definitions.ts'

/**
 * The metrics of one app and its process (`process_*`, `nodejs_*`): docs/metrics.md. Names are as in {@link
 * metricDefinitions}, unprefixed. Methods do not throw. A negative or non-finite value counts as 0.
 */
export interface Metrics {
  /** Adds `amount` to a counter. */
  add<Name extends MetricNameOf<'counter'>>(name: Name, labels: LabelsOf<Name>, amount?: number): void
  /** Sets a gauge. */
  set<Name extends MetricNameOf<'gauge'>>(name: Name, labels: LabelsOf<Name>, value: number): void
  /** Records a duration, given in milliseconds and exported in seconds. */
  observe<Name extends MetricNameOf<'histogram'>>(name: Name, labels: LabelsOf<Name>, durationMs: number): void
  /** Counts a turn that went on without a part of the cache. A reason that is not listed counts as `other`. */
  addDegraded(reason: string): void
  /** Sum of a counter over all its labels. */
  total(name: MetricNameOf<'counter'>): Promise<number>
  /** Removes all series of a pod or model that no longer exists. */
  forget(label: 'pod' | 'model', value: string): Promise<void>
  /** Calls `update` before each rendering, to set gauges. An `update` that fails leaves its gauges unchanged. */
  beforeRender(update: () => void | Promise<void>): void
  /** All metrics in the Prometheus text format. */
  render(): Promise<string>
  /** Content-Type of the text that `render` returns. */
  readonly contentType: string
}

/** `version` is the gateway's. */
export const createMetrics = (options: { readonly version: string }): Metrics => {
  const registry = new Registry()
  const counters = new Map<string, Counter>()
  const gauges = new Map<string, Gauge>()
  const histograms = new Map<string, Histogram>()
  const updates: (() => void | Promise<void>)[] = []

  for (const [name, definition] of Object.entries<MetricDefinition>(metricDefinitions)) {
    const { help, labels, buckets = [] } = definition
    const settings = { name: metricPrefix + name, help, labelNames: Object.keys(labels), registers: [registry] }
    switch (definition.type) {
      case 'counter': {
        const counter = new Counter(settings)
        for (const combination of closedCombinations(definition)) counter.inc({ ...combination }, 0)
        counters.set(name, counter)
        break
      }
      case 'gauge':
        gauges.set(name, new Gauge(settings))
        break
      case 'histogram':
        histograms.set(name, new Histogram({ ...settings, buckets: [...buckets] }))
        break
    }
  }
  collectDefaultMetrics({ register: registry })

  const set = <Name extends MetricNameOf<'gauge'>>(name: Name, labels: LabelsOf<Name>, value: number): void =>
    gauges.get(name)?.set(labels, valid(value))
  set('build_info', { version: options.version, node_version: process.versions.node }, 1)

  return {
    add: <Name extends MetricNameOf<'counter'>>(name: Name, labels: LabelsOf<Name>, amount = 1): void =>
      counters.get(name)?.inc(labels, valid(amount)),
    set,
    observe: <Name extends MetricNameOf<'histogram'>>(name: Name, labels: LabelsOf<Name>, durationMs: number): void =>
      histograms.get(name)?.observe(labels, valid(durationMs) / 1000),
    addDegraded: (reason) => counters.get('degraded_total')?.inc({ reason: isListed(reason) ? reason : 'other' }),
    total: async (name) => {
      const { values = [] } = (await counters.get(name)?.get()) ?? {}
      return values.reduce((sum, { value }) => sum + value, 0)
    },
    forget: async (label, value) => {
      for (const metric of [...counters.values(), ...gauges.values(), ...histograms.values()]) {
        const { values } = await metric.get()
        for (const { labels } of values) {
          // The bucket of a histogram is no label of its series.
          const { le: _, ...ofSeries } = labels
          if (labels[label] === value) metric.remove(ofSeries)
        }
      }
    },
    beforeRender: (update) => void updates.push(update),
    render: async () => {
      await Promise.allSettled(updates.map(async (update) => update()))
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

const isListed = (reason: string): reason is LabelValue<'degraded_total', 'reason'> =>
  metricDefinitions.degraded_total.labels.reason.some((listed) => listed === reason)

/** Every combination of closed label values. A counter that is 0 before its first event can be alerted on. */
const closedCombinations = (definition: MetricDefinition): readonly Readonly<Record<string, string>>[] => {
  let combinations: readonly Readonly<Record<string, string>>[] = [{}]
  for (const [label, range] of Object.entries(definition.labels)) {
    if (typeof range === 'string') return []
    combinations = combinations.flatMap((labels) => range.map((value) => ({ ...labels, [label]: value })))
  }
  return combinations
}

const valid = (value: number): number => (Number.isFinite(value) && value > 0 ? value : 0)
