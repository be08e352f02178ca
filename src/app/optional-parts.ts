import { type Admission, createAdmission } from '../admission/admission.ts'
import { planAdmission } from '../admission/plan/plan-admission.ts'
import type { Config } from '../config/config.ts'
import { type LiveConfig, liveView } from '../config/live-config.ts'
import { listedPods } from '../config/pools.ts'
import type { ResponseCacheParts } from '../context/response-cache-handler.ts'
import type { FormerSecret } from '../crypto/former-secret.ts'
import { createMemoryResponseCache } from '../responsecache/response-cache.ts'
import { createResponseCaptures } from '../responsecache/response-capture.ts'
import type { HistoryParts } from '../responses/answer-requests.ts'
import { createResponseHistory } from '../responses/create-response-history.ts'
import type { HistoryStore } from '../responses/history-store.ts'
import type { ResponseHistory } from '../responses/response-history.ts'
import type { PodState } from '../routing/pod.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../tracing/create-tracing.ts'

/** The queue of turns, with its metrics. */
export const createConfiguredAdmission = (
  live: LiveConfig,
  parts: { readonly pods: () => readonly PodState[]; readonly metrics: Metrics; readonly log: Logger },
): Admission => {
  const { metrics, log } = parts
  const config = live.current
  const outcome = planAdmission(config.admission, listedPods(config))
  if (outcome.kind === 'invalid') throw new Error('the configuration was not checked')
  const admission = createAdmission({
    plan: outcome.plan,
    get maxWaiting() {
      return live.current.admission.maxWaiting
    },
    get maxWaitMs() {
      return live.current.admission.maxWaitMs
    },
    messageTimeoutMs: config.admission.messageTimeoutMs,
    leaseMs: config.turns.leaseSeconds * 1000,
    nowMs: () => performance.now(),
    events: {
      settled: (kind, settlement, durationMs) => {
        const isWithout = settlement.kind === 'admitted' && !settlement.hasRoom
        metrics.observe(
          'admission_wait_seconds',
          { kind, outcome: isWithout ? 'no_room' : settlement.kind },
          durationMs,
        )
        if (settlement.kind === 'refused') metrics.add('admission_refused_total', { kind, reason: settlement.reason })
      },
      leaseExpired: (kind) => {
        metrics.add('admission_leases_expired_total', { kind })
        log.warn('admission lease expired: no end-of-turn report', { kind })
      },
    },
  })
  metrics.beforeRender(() => {
    metrics.set('admission_waiting', {}, admission.waiting())
    const addresses = parts.pods().map(({ address }) => address)
    for (const { resource, pod = 'global', inUse, count } of admission.usage(addresses)) {
      metrics.set('admission_resource_in_use', { resource, pod }, inUse)
      metrics.set('admission_resource_capacity', { resource, pod }, count)
    }
  })
  return admission
}

/** The response cache with its metrics; undefined where it is off or no model may use it. */
export const createResponseCaching = (config: Config, metrics: Metrics): ResponseCacheParts | undefined => {
  const { models, maxBytes, maxEntryBytes } = config.responseCache
  if (maxBytes === 0 || models.length === 0) return undefined
  const onEvicted = (): void => metrics.add('response_cache_evictions_total', {})
  const cache = createMemoryResponseCache({ maxBytes, maxEntryBytes, onEvicted })
  metrics.beforeRender(() => {
    const { entries, bytes } = cache.size()
    metrics.set('response_cache_entries', {}, entries)
    metrics.set('response_cache_bytes', {}, bytes)
  })
  const captures = createResponseCaptures({ cache, maxBytes, maxEntryBytes })
  return {
    cache,
    beginCapture: captures.begin,
    forget: (tenant) => {
      captures.forget(tenant)
      return cache.forget(tenant)
    },
    maxEntryBytes,
    models,
    onLookup: (result) => metrics.add('response_cache_lookups_total', { result }),
  }
}

/** Responses and conversations that are kept; undefined where they are not. */
export const createConfiguredHistory = (
  live: LiveConfig,
  parts: { readonly openHistory: () => HistoryStore; readonly former: FormerSecret | undefined },
): (HistoryParts & { readonly history: ResponseHistory }) | undefined => {
  const { responses, tenant } = live.current
  if (!responses.store) return undefined
  return createResponseHistory({
    store: parts.openHistory(),
    secret: tenant.secret,
    former: parts.former,
    limits: liveView(() => ({ ...live.current.responses, ...live.current.turns })),
  })
}

/** Traces of turns; undefined where they are off, and then nothing of OpenTelemetry is loaded. */
export const createConfiguredTracing = async (
  { traces }: Config,
  parts: { readonly log: Logger; readonly version: string },
): Promise<Tracing | undefined> => {
  const { otlpEndpoint, otlpTracesEndpoint, otlpHeaders: headers, serviceName, sampleRatio } = traces
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`)
  if (url === undefined) return undefined
  const { createTracing } = await import('../tracing/create-tracing.ts')
  return createTracing({ ...parts, url, headers, serviceName, sampleRatio })
}
