import { type Admission, createAdmission } from '../admission/admission.ts'
import { planAdmission } from '../admission/plan/plan-admission.ts'
import type { Config } from '../config/config.ts'
import type { PodSource } from '../routing/pod.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Admission control as the configuration has it, with its metrics; undefined where nothing requires anything. */
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
        log.warn('resources came free by lease: the end of their turn was not told to this process', { kind })
      },
    },
  })
  metrics.beforeRender(() => {
    metrics.setAdmissionWaiting(admission.waiting())
    for (const { resource, pod = 'global', inUse, count } of admission.usage(parts.pods.pods().map(toAddress)))
      metrics.setResourceUsage({ resource, pod, inUse, count })
  })
  return admission
}

const toAddress = ({ address }: { readonly address: string }): string => address
