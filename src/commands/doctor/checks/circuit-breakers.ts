import { type Door, type EnvoyFacts, engineClusters } from '../envoy-facts.ts'
import { accessLogSchema, type Cluster } from '../envoy-schema.ts'
import type { Check, Problems } from '../finding.ts'
import { doorCheck } from './door-check.ts'

const envoyDefault = 1_024
const defaultRetries = 3
const fields = ['max_connections', 'max_pending_requests', 'max_requests'] as const
const fix =
  'circuit_breakers: { thresholds: [{ max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, max_retries: 1000 }] }'

const findNarrow = ({ name, circuit_breakers: breakers }: Cluster): Problems => {
  const thresholds = breakers?.thresholds.find(({ priority }) => priority === 'DEFAULT')
  const narrow = fields.filter((field) => (thresholds?.[field] ?? envoyDefault) <= envoyDefault)
  const retries = thresholds?.max_retries ?? defaultRetries
  if (narrow.length > 0) {
    const values = narrow.map((field) => `${field} ${thresholds?.[field] ?? `${envoyDefault} (the default)`}`)
    return {
      severity: 'error',
      problem: `Cluster ${name}: ${values.join(', ')}.`,
      why: 'Each request holds a stream while it runs: beyond that many at a time they fail, or bypass the gateway.',
      fix: `cluster ${name}: ${fix}`,
    }
  }
  if (retries > defaultRetries) return []
  return {
    severity: 'warning',
    problem: `Cluster ${name}: max_retries ${thresholds?.max_retries ?? `${defaultRetries} (the default)`}.`,
    why: 'When a pod or gateway ends, most of the requests that met it fail instead of going to another one.',
    fix: `cluster ${name}: ${fix}`,
  }
}

/** The clusters of a door that requests and ends of turns go through. */
const clustersOf = (envoy: EnvoyFacts, door: Door): readonly Cluster[] => {
  const logs = door.manager.access_log.flatMap(({ typed_config: config }) => {
    const { common_config: common, grpc_service: own } = accessLogSchema.safeParse(config).data ?? {}
    return (own ?? common?.grpc_service)?.envoy_grpc?.cluster_name ?? []
  })
  const asked = door.extProcs.flatMap(({ config }) => config.grpc_service?.envoy_grpc?.cluster_name ?? [])
  const names = [...asked, ...logs]
  const gateways = envoy.clusters.filter(({ name }) => names.includes(name))
  return [...new Set([...engineClusters(envoy, door), ...gateways])]
}

const circuitBreakers = doorCheck('circuit-breakers', 'all', (door, { envoy }) =>
  clustersOf(envoy, door).flatMap(findNarrow),
)

const overflows = doorCheck('overflows', 'all', (door, { envoy }) =>
  clustersOf(envoy, door).flatMap(({ name }) => {
    const counters = ['upstream_rq_pending_overflow', 'upstream_cx_overflow', 'upstream_rq_retry_overflow']
    return counters.flatMap((counter): Problems => {
      const value = envoy.stats.get(`cluster.${name}.${counter}`) ?? 0
      if (value === 0) return []
      return {
        severity: 'warning',
        problem: `cluster.${name}.${counter} is ${value} since Envoy's start.`,
        why: 'A circuit breaker refused so many requests, connections or retries.',
        fix: `cluster ${name}: higher circuit_breakers; max_retries for retries`,
      }
    })
  }),
)

export const circuitBreakerChecks: readonly Check[] = [circuitBreakers, overflows]
