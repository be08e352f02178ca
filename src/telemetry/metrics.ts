import type { LabelValue } from './metric-definitions.ts'
import { createMetricRegistry } from './metric-registry.ts'

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

/**
 * Counts and measures what the rooms do. Every method is cheap and never throws. What each metric means stands in docs/metrics.md.
 * Durations are given in milliseconds and exposed in seconds. The functions can be handed on by themselves as callbacks.
 */
export interface Metrics {
  readonly requestDecided: (request: { readonly route: RequestRoute; readonly outcome: RequestOutcome }) => void
  readonly lookedUp: (result: LookupResult) => void
  readonly sessionCreated: () => void
  readonly sessionsDeleted: (ended: { readonly reason: SessionEnd; readonly count: number }) => void
  /** Gauges that whoever knows them sets from time to time. */
  readonly setSessionsActive: (count: number) => void
  readonly setSessionsBytes: (bytes: number) => void
  readonly setKvStoredBytes: (bytes: number) => void
  readonly setRemovalsPending: (count: number) => void
  readonly setTurnsInFlight: (count: number) => void
  readonly setStoreCircuit: (state: 'open' | 'closed') => void
  readonly kvEvicted: (evicted: { readonly reason: KvEviction; readonly count: number }) => void
  readonly turnEnded: (outcome: TurnOutcome) => void
  readonly tokensUsed: (usage: { readonly promptTokens: number; readonly cachedTokens: number }) => void
  readonly kvLoadEnded: (load: { readonly result: KvLoadResult; readonly durationMs: number }) => void
  readonly kvOffloadEnded: (offload: { readonly result: KvOffloadResult; readonly durationMs: number }) => void
  /** Something of the cache failed, and a turn went on without it. `reason` is one of a few words in the code. */
  readonly degraded: (reason: string) => void
  readonly storeOperationEnded: (operation: {
    readonly op: string
    readonly durationMs: number
    readonly failed: boolean
  }) => void
  readonly recordCorrupted: () => void
  readonly routed: (decision: { readonly policy: string; readonly pod: string }) => void
  readonly responseLookedUp: (result: ResponseLookup) => void
  readonly responseEvicted: () => void
  readonly setResponseCache: (size: { readonly entries: number; readonly bytes: number }) => void
  readonly admissionEnded: (wait: {
    readonly kind: AdmissionKind
    readonly outcome: AdmissionOutcome
    readonly durationMs: number
  }) => void
  readonly admissionRefused: (refusal: { readonly kind: AdmissionKind; readonly reason: AdmissionRefusal }) => void
  readonly admissionLeaseExpired: (kind: AdmissionKind) => void
  readonly setAdmissionWaiting: (count: number) => void
  /** `pod` is `global` where the resource belongs to none. */
  readonly setResourceUsage: (usage: {
    readonly resource: string
    readonly pod: string
    readonly inUse: number
    readonly count: number
  }) => void
  readonly streamOpened: () => void
  readonly streamClosed: () => void
  readonly messageAnswered: (message: { readonly phase: MessagePhase; readonly durationMs: number }) => void
  readonly accessLogMalformed: () => void
  readonly eventLoopLagged: (lagMs: number) => void
  /** Content-Type of the text that `render` gives. */
  readonly contentType: string
  /** Calls `update` before every rendering, to set gauges that are read rather than told. An `update` that fails leaves its gauges as they were. */
  readonly beforeRender: (update: () => void | Promise<void>) => void
  /** All metrics in the Prometheus exposition format. */
  readonly render: () => Promise<string>
}

/** Metrics of one app, shared with nobody. `version` is the gateway's own. */
export const createMetrics = (options: { readonly version: string }): Metrics => {
  const registry = createMetricRegistry()
  const updates: (() => void | Promise<void>)[] = []
  let openStreams = 0
  updates.push(() => registry.set('ext_proc_streams_active', openStreams))
  registry.set('build_info', 1, { version: options.version, node_version: process.versions.node })

  return {
    requestDecided: ({ route, outcome }) => registry.add('requests_total', 1, { route, outcome }),
    lookedUp: (result) => registry.add('lookups_total', 1, { result }),
    sessionCreated: () => registry.add('sessions_created_total', 1),
    sessionsDeleted: ({ reason, count }) => registry.add('sessions_deleted_total', amount(count), { reason }),
    setSessionsActive: (count) => registry.set('sessions_active', amount(count)),
    setSessionsBytes: (bytes) => registry.set('sessions_bytes', amount(bytes)),
    setKvStoredBytes: (bytes) => registry.set('kv_stored_bytes', amount(bytes)),
    setRemovalsPending: (count) => registry.set('removals_pending', amount(count)),
    setTurnsInFlight: (count) => registry.set('turns_in_flight', amount(count)),
    setStoreCircuit: (state) => registry.set('store_circuit_open', state === 'open' ? 1 : 0),
    kvEvicted: ({ reason, count }) => registry.add('kv_evictions_total', amount(count), { reason }),
    turnEnded: (outcome) => registry.add('turns_total', 1, { outcome }),
    tokensUsed: ({ promptTokens, cachedTokens }) => {
      registry.add('prompt_tokens_total', amount(promptTokens))
      registry.add('cached_tokens_total', amount(cachedTokens))
    },
    kvLoadEnded: ({ result, durationMs }) =>
      registry.observe('kv_load_duration_seconds', toSeconds(durationMs), { result }),
    kvOffloadEnded: ({ result, durationMs }) =>
      registry.observe('kv_offload_duration_seconds', toSeconds(durationMs), { result }),
    degraded: (reason) => registry.add('degraded_total', 1, { reason }),
    storeOperationEnded: ({ op, durationMs, failed }) => {
      registry.observe('store_duration_seconds', toSeconds(durationMs), { op })
      registry.add('store_errors_total', failed ? 1 : 0, { op })
    },
    recordCorrupted: () => registry.add('corrupted_records_total', 1),
    routed: ({ policy, pod }) => registry.add('routing_decisions_total', 1, { policy, pod }),
    responseLookedUp: (result) => registry.add('response_cache_lookups_total', 1, { result }),
    responseEvicted: () => registry.add('response_cache_evictions_total', 1),
    setResponseCache: ({ entries, bytes }) => {
      registry.set('response_cache_entries', amount(entries))
      registry.set('response_cache_bytes', amount(bytes))
    },
    admissionEnded: ({ kind, outcome, durationMs }) =>
      registry.observe('admission_wait_seconds', toSeconds(durationMs), { kind, outcome }),
    admissionRefused: ({ kind, reason }) => registry.add('admission_refused_total', 1, { kind, reason }),
    admissionLeaseExpired: (kind) => registry.add('admission_leases_expired_total', 1, { kind }),
    setAdmissionWaiting: (count) => registry.set('admission_waiting', amount(count)),
    setResourceUsage: ({ resource, pod, inUse, count }) => {
      registry.set('admission_resource_in_use', amount(inUse), { resource, pod })
      registry.set('admission_resource_capacity', amount(count), { resource, pod })
    },
    streamOpened: () => {
      openStreams += 1
    },
    streamClosed: () => {
      openStreams = Math.max(0, openStreams - 1)
    },
    messageAnswered: ({ phase, durationMs }) =>
      registry.observe('ext_proc_message_duration_seconds', toSeconds(durationMs), { phase }),
    accessLogMalformed: () => registry.add('access_log_malformed_total', 1),
    eventLoopLagged: (lagMs) => registry.observe('eventloop_lag_seconds', toSeconds(lagMs)),
    contentType: registry.contentType,
    beforeRender: (update) => {
      updates.push(update)
    },
    render: async () => {
      await Promise.allSettled(updates.map(async (update) => update()))
      return registry.render()
    },
  }
}

/** A counter cannot go down, and a metric must not fail the turn that it counts. */
const amount = (value: number): number => (Number.isFinite(value) && value > 0 ? value : 0)

const toSeconds = (milliseconds: number): number => amount(milliseconds) / 1000
