import { type Check, checkOf } from '../finding.ts'
import { doorCheck } from './door-check.ts'

const leastVersion = [1, 40]
const gracefulClose = 'envoy.reloadable_features.ext_proc_graceful_grpc_close'

const envoyVersion = checkOf('envoy-version', 'envoy', ({ version }) => {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = leastVersion
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return []
  return {
    severity: 'error',
    problem: `Envoy is ${version}.`,
    why: 'Envoy before 1.40 lacks fields of envoy.yaml.',
    fix: 'Run Envoy 1.40 or newer.',
  }
})

/** No turn runs for as long. */
const leastIdleSeconds = 86_400

const gracefulCloses = doorCheck('graceful-close', 'all', ({ isPicker }, { envoy }) => {
  const value = envoy.runtime.get(gracefulClose)
  if (value !== 'true') {
    // Resets are within the gateway's limits; an inference gateway has no field for the key.
    if (isPicker) return []
    return {
      severity: 'error',
      problem: `Runtime key ${gracefulClose} is ${value ?? 'not set'}.`,
      why: 'Envoy resets every ext_proc stream, and the gateway closes a connection with too many resets.',
      fix: `layered_runtime: { layers: [{ name: static, static_layer: { ${gracefulClose}: true } }] }`,
    }
  }
  if (envoy.grpcClientIdleSeconds >= leastIdleSeconds) return []
  return {
    severity: 'error',
    problem: `A worker thread drops its client of the gateway after ${envoy.grpcClientIdleSeconds} s without a new stream.`,
    why: 'Envoy 1.40.0 crashes when the last stream of a dropped client ends.',
    fix: 'grpc_async_client_manager_config: { max_cached_entry_idle_duration: 31536000s }',
  }
})

const asksAGateway = checkOf('ext-proc', 'envoy', ({ doors }) =>
  doors.length > 0
    ? []
    : {
        severity: 'error',
        problem: 'No HTTP connection manager has the filter envoy.filters.http.ext_proc.',
        why: 'No request reaches the gateway, so that no session is made or used.',
        fix: 'Take http_filters, routes and the clusters gateway and gateway_ends over from envoy.yaml.',
      },
)

const namespaces = doorCheck('metadata', 'all', ({ extProcs, isPicker }) => {
  const needed = isPicker ? ['envoy.lb'] : ['ctx', 'envoy.lb']
  const missing = needed.filter((name) =>
    extProcs.some(({ config }) => !config.metadata_options?.receiving_namespaces?.untyped.includes(name)),
  )
  if (missing.length === 0) return []
  return {
    severity: 'error',
    problem: `ext_proc does not accept the metadata ${missing.join(', ')} of the gateway.`,
    why: 'Turns go to any pod, and what the gateway splices into their bodies is lost.',
    fix: `metadata_options: { receiving_namespaces: { untyped: [${needed.join(', ')}] } }`,
  }
})

const failureMode = doorCheck('failure-mode', 'routes', ({ extProcs }) =>
  extProcs.every(({ config }) => config.failure_mode_allow)
    ? []
    : {
        severity: 'warning',
        problem: 'failure_mode_allow of ext_proc is false.',
        why: 'Turns fail while no gateway answers, and a gateway that ends cuts running answers.',
        fix: 'failure_mode_allow: true',
      },
)

/** The Envoy, and how it asks the gateway. */
export const envoyChecks: readonly Check[] = [envoyVersion, asksAGateway, gracefulCloses, namespaces, failureMode]
