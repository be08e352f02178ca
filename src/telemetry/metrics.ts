import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import {
  type LabelValue,
  type MetricDefinition,
  type MetricName,
  metricDefinitions,
  metricPrefix,
} from './metric-definitions.ts'

export type RequestRoute = LabelValue<'requests_total', 'route'>
export type RequestOutcome = LabelValue<'requests_total', 'outcome'>
export type LookupResult = LabelValue<'lookups_total', 'result'>
export type SessionEnd = LabelValue<'sessions_deleted_total', 'reason'>
export type KvEviction = LabelValue<'kv_evictions_total', 'reason'>
export type TurnOutcome = LabelValue<'turns_total', 'outcome'>
export type KvLoadResult = LabelValue<'kv_load_duration_seconds', 'result'>
export type KvOffloadResult = LabelValue<'kv_offload_duration_seconds', 'result'>
export type ResponseLookup = LabelValue<'response_cache_lookups_total', 'result'>
export type AdmissionKind = LabelValue<'admission_refused_total', 'kind'>
export type AdmissionOutcome = LabelValue<'admission_wait_seconds', 'outcome'>
export type AdmissionRefusal = LabelValue<'admission_refused_total', 'reason'>
export type MessagePhase = LabelValue<'ext_proc_message_duration_seconds', 'phase'>

/** Records what the gateway does. Methods do not throw, and each can be passed on as a callback. */
export type Metrics = ReturnType<typeof createMetrics>

/**
 * The metrics of one app, and `process_*` and `nodejs_*` of its process. docs/metrics.md explains each. `version` is the gateway's. Durations are
 * given in milliseconds and exported in seconds. A negative or non-finite value counts as 0.
 */
export const createMetrics = (options: { readonly version: string }) => {
  const { registry, add, set, observe, removePod } = createRegistry()
  const updates: (() => void | Promise<void>)[] = []
  let openStreams = 0
  collectDefaultMetrics({ register: registry })
  set('build_info', 1, { version: options.version, node_version: process.versions.node })

  return {
    requestDecided: (labels: { readonly route: RequestRoute; readonly outcome: RequestOutcome }) =>
      add('requests_total', 1, labels),
    lookedUp: (result: LookupResult) => add('lookups_total', 1, { result }),
    sessionCreated: () => add('sessions_created_total', 1),
    sessionsDeleted: ({ reason, count }: { readonly reason: SessionEnd; readonly count: number }) =>
      add('sessions_deleted_total', count, { reason }),
    setSessionsActive: (count: number) => set('sessions_active', count),
    setSessionsBytes: (bytes: number) => set('sessions_bytes', bytes),
    setKvStoredBytes: (bytes: number) => set('kv_stored_bytes', bytes),
    setRemovalsPending: (count: number) => set('removals_pending', count),
    setTurnsInFlight: (count: number) => set('turns_in_flight', count),
    setStoreCircuit: (state: 'open' | 'closed') => set('store_circuit_open', state === 'open' ? 1 : 0),
    kvEvicted: ({ reason, count }: { readonly reason: KvEviction; readonly count: number }) =>
      add('kv_evictions_total', count, { reason }),
    turnEnded: (outcome: TurnOutcome) => add('turns_total', 1, { outcome }),
    tokensUsed: (usage: { readonly promptTokens: number; readonly cachedTokens: number }) => {
      add('prompt_tokens_total', usage.promptTokens)
      add('cached_tokens_total', usage.cachedTokens)
    },
    kvLoadEnded: ({ result, durationMs }: { readonly result: KvLoadResult; readonly durationMs: number }) =>
      observe('kv_load_duration_seconds', durationMs, { result }),
    kvOffloadEnded: ({ result, durationMs }: { readonly result: KvOffloadResult; readonly durationMs: number }) =>
      observe('kv_offload_duration_seconds', durationMs, { result }),
    /** A part of the cache failed and a turn continued without it. A reason that is not in the metric's list counts as `other`. */
    degraded: (reason: string) => add('degraded_total', 1, { reason }),
    storeOperationEnded: (operation: {
      readonly op: string
      readonly durationMs: number
      readonly failed: boolean
    }) => {
      const { op, durationMs, failed } = operation
      observe('store_duration_seconds', durationMs, { op })
      add('store_errors_total', failed ? 1 : 0, { op })
    },
    recordCorrupted: () => add('corrupted_records_total', 1),
    routed: (labels: { readonly policy: string; readonly pod: string }) => add('routing_decisions_total', 1, labels),
    /** Removes all series of a pod that no longer exists. */
    podRemoved: removePod,
    responseLookedUp: (result: ResponseLookup) => add('response_cache_lookups_total', 1, { result }),
    responseEvicted: () => add('response_cache_evictions_total', 1),
    setResponseCache: ({ entries, bytes }: { readonly entries: number; readonly bytes: number }) => {
      set('response_cache_entries', entries)
      set('response_cache_bytes', bytes)
    },
    admissionEnded: (wait: {
      readonly kind: AdmissionKind
      readonly outcome: AdmissionOutcome
      readonly durationMs: number
    }) => observe('admission_wait_seconds', wait.durationMs, { kind: wait.kind, outcome: wait.outcome }),
    admissionRefused: (labels: { readonly kind: AdmissionKind; readonly reason: AdmissionRefusal }) =>
      add('admission_refused_total', 1, labels),
    admissionLeaseExpired: (kind: AdmissionKind) => add('admission_leases_expired_total', 1, { kind }),
    setAdmissionWaiting: (count: number) => set('admission_waiting', count),
    /** `pod` is `global` for a resource that all pods share. */
    setResourceUsage: (usage: {
      readonly resource: string
      readonly pod: string
      readonly inUse: number
      readonly count: number
    }) => {
      const { resource, pod, inUse, count } = usage
      set('admission_resource_in_use', inUse, { resource, pod })
      set('admission_resource_capacity', count, { resource, pod })
    },
    streamOpened: () => {
      openStreams += 1
    },
    streamClosed: () => {
      openStreams -= 1
    },
    messageAnswered: ({ phase, durationMs }: { readonly phase: MessagePhase; readonly durationMs: number }) =>
      observe('ext_proc_message_duration_seconds', durationMs, { phase }),
    accessLogMalformed: () => add('access_log_malformed_total', 1),
    /** Content-Type of the text that `render` returns. */
    contentType: registry.contentType,
    /** Calls `update` before each rendering, to set gauges. An `update` that fails leaves its gauges unchanged. */
    beforeRender: (update: () => void | Promise<void>) => {
      updates.push(update)
    },
    /** All metrics in the Prometheus text format. */
    render: async (): Promise<string> => {
      set('ext_proc_streams_active', openStreams)
      await Promise.allSettled(updates.map(async (update) => update()))
      return registry.metrics()
    },
  }
}

type Labels = Readonly<Record<string, string>>

/** All defined metrics in a registry of their own. */
const createRegistry = () => {
  const registry = new Registry()
  const counters = new Map<MetricName, Counter>()
  const gauges = new Map<MetricName, Gauge>()
  const histograms = new Map<MetricName, Histogram>()

  for (const [name, definition] of metrics) {
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

  return {
    registry,
    add: (name: MetricName, amount: number, labels: Labels = {}) =>
      counters.get(name)?.inc(bounded(name, labels), valid(amount)),
    set: (name: MetricName, value: number, labels: Labels = {}) =>
      gauges.get(name)?.set(bounded(name, labels), valid(value)),
    observe: (name: MetricName, durationMs: number, labels: Labels = {}) =>
      histograms.get(name)?.observe(bounded(name, labels), valid(durationMs) / 1000),
    removePod: async (pod: string): Promise<void> => {
      for (const metric of [...counters.values(), ...gauges.values()]) {
        const { values } = await metric.get()
        for (const { labels } of values) if (labels['pod'] === pod) metric.remove(labels)
      }
    },
  }
}

const metrics = Object.entries(metricDefinitions) as readonly (readonly [MetricName, MetricDefinition])[]

/** Replaces a value outside its closed list by `other`. */
const bounded = (name: MetricName, labels: Labels): Record<string, string> => {
  const ranges: MetricDefinition['labels'] = metricDefinitions[name].labels
  const result: Record<string, string> = {}
  for (const [label, value] of Object.entries(labels)) {
    const range = ranges[label]
    result[label] = Array.isArray(range) && !range.includes(value) ? 'other' : value
  }
  return result
}

/** Every combination of closed label values. A counter that is 0 before its first event can be alerted on. */
const closedCombinations = (definition: MetricDefinition): readonly Labels[] => {
  let combinations: readonly Labels[] = [{}]
  for (const [label, range] of Object.entries(definition.labels)) {
    if (typeof range === 'string') return []
    combinations = combinations.flatMap((labels) => range.map((value) => ({ ...labels, [label]: value })))
  }
  return combinations
}

const valid = (value: number): number => (Number.isFinite(value) && value > 0 ? value : 0)
