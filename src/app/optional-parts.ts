import { type Admission, createAdmission } from '../admission/admission.ts'
import { planAdmission } from '../admission/plan/plan-admission.ts'
import type { Config } from '../config/config.ts'
import type { ResponseCacheParts } from '../context/response-cache-handler.ts'
import { createMemoryResponseCache } from '../responsecache/response-cache.ts'
import { createResponseCaptures } from '../responsecache/response-capture.ts'
import type { PodSource } from '../routing/pod.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Admission control with its metrics; undefined where no work requires a resource. */
export const createConfiguredAdmission = (
  config: Config,
  parts: { readonly pods: Pick<PodSource, 'pods'>; readonly metrics: Metrics; readonly log: Logger },
): Admission | undefined => {
  const { metrics, log } = parts
  const { routing, turns } = config
  const outcome = planAdmission(config.admission, routing.dns === undefined ? routing.pods : undefined)
  if (outcome.kind === 'off') return undefined
  if (outcome.kind === 'invalid') throw new Error('the configuration was not checked')
  const admission = createAdmission({
    plan: outcome.plan,
    maxWaiting: config.admission.maxWaiting,
    maxWaitMs: config.admission.maxWaitMs,
    leaseMs: turns.leaseSeconds * 1000,
    nowMs: () => performance.now(),
    events: {
      settled: (kind, settlement, durationMs) => {
        metrics.admissionEnded({ kind, outcome: settlement.kind, durationMs })
        if (settlement.kind === 'refused') metrics.admissionRefused({ kind, reason: settlement.reason })
      },
      leaseExpired: (kind) => {
        metrics.admissionLeaseExpired(kind)
        log.warn('admission lease expired: no end-of-turn report', { kind })
      },
    },
  })
  metrics.beforeRender(() => {
    metrics.setAdmissionWaiting(admission.waiting())
    for (const { resource, pod = 'global', inUse, count } of admission.usage(
      parts.pods.pods().map(({ address }) => address),
    ))
      metrics.setResourceUsage({ resource, pod, inUse, count })
  })
  return admission
}

/** The response cache with its metrics; undefined where it is off or no model may use it. */
export const createResponseCaching = (config: Config, metrics: Metrics): ResponseCacheParts | undefined => {
  const { models, maxBytes, maxEntryBytes } = config.responseCache
  if (maxBytes === 0 || models.length === 0) return undefined
  const cache = createMemoryResponseCache({ maxBytes, maxEntryBytes, onEvicted: metrics.responseEvicted })
  metrics.beforeRender(() => metrics.setResponseCache(cache.size()))
  return {
    cache,
    beginCapture: createResponseCaptures({ cache, maxBytes, maxEntryBytes }).begin,
    models,
    onLookup: metrics.responseLookedUp,
  }
}
