import { isByIp } from '../../../options/values.ts'
import { engineClusters } from '../envoy-facts.ts'
import { type Check, checkOf, type Problems } from '../finding.ts'
import { doorCheck, noDoor } from './door-check.ts'

/** Pods that the gateway names, and Envoy does not know. */
const podsInEnvoy = checkOf('pods-in-envoy', 'gateway', ({ pods }, { envoy }) => {
  if (envoy.kind === 'unknown') return envoy.why
  const { doors, hosts } = envoy.value
  if (doors.length === 0) return noDoor
  const clusters = [...new Set(doors.flatMap((door) => engineClusters(envoy.value, door)))]
  const known = new Set(clusters.flatMap(({ name }) => hosts.get(name) ?? []))
  const strange = pods.map(({ address }) => address).filter((address) => isByIp(address) && !known.has(address))
  if (strange.length === 0) return []
  return {
    severity: 'error',
    problem: `The gateway names ${strange.join(', ')}; Envoy has ${[...known].join(', ') || 'no pods'} in ${clusters.map(({ name }) => name).join(', ')}.`,
    why: 'Turns for these pods go to the least busy one instead, and do not find their KV.',
    fix: 'the same addresses in routing.pods (or DNS name, or Service) and in the cluster of Envoy',
  }
})

const healthChecks = doorCheck('health-checks', 'all', ({ extProcs, isPicker }, { envoy }) => {
  const names = extProcs.flatMap(({ config }) => config.grpc_service?.envoy_grpc?.cluster_name ?? [])
  return envoy.clusters
    .filter(({ name }) => names.includes(name))
    .flatMap(({ name, type, health_checks: checks, common_lb_config: common }): Problems => {
      // Inference gateways have no field for health checks of a picker: their control plane names ready ones alone.
      if (checks.length === 0 && isPicker && type === 'EDS') return []
      if (checks.length === 0)
        return {
          severity: 'warning',
          problem: `Cluster ${name} has no health check.`,
          why: 'Turns wait up to message_timeout for a gateway that is down.',
          fix: `cluster ${name}: health_checks of envoy.yaml (grpc_health_check)`,
        }
      const panic = common?.healthy_panic_threshold?.value ?? 50
      // 1, where a control plane takes 0 for none: only without a single healthy gateway.
      if (panic <= 1) return []
      return {
        severity: 'warning',
        problem: `healthy_panic_threshold of cluster ${name} is ${common?.healthy_panic_threshold?.value ?? '50 (the default)'}.`,
        why: 'When half of the gateways are down, Envoy asks all of them, and turns wait up to message_timeout.',
        fix: `cluster ${name}: common_lb_config: { healthy_panic_threshold: { value: 0 } }`,
      }
    })
})

export const podChecks: readonly Check[] = [podsInEnvoy, healthChecks]
