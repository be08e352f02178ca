/** Envoy's response flags of one request, by name; a flag that is not raised is missing. */
type ResponseFlags = Readonly<Record<string, boolean>>

const clientFlags = ['downstream_connection_termination', 'downstream_remote_reset'] as const

const upstreamFlags = [
  'no_healthy_upstream',
  'upstream_request_timeout',
  'upstream_remote_reset',
  'upstream_connection_failure',
  'upstream_connection_termination',
  'upstream_overflow',
  'upstream_retry_limit_exceeded',
  'upstream_max_stream_duration_reached',
  'upstream_protocol_error',
  'dns_resolution_failure',
] as const

const gatewayFlags = [
  'local_reset',
  'no_route_found',
  'fault_injected',
  'stream_idle_timeout',
  'downstream_protocol_error',
  'duration_timeout',
  'no_cluster_found',
  'overload_manager',
] as const

/** The client closed or reset its side before the answer had ended. */
export const leftByClient = (flags: ResponseFlags): boolean => clientFlags.some((flag) => flags[flag] === true)

/** The upstream refused, reset, timed out or was not to be had. */
export const isUpstreamFailure = (flags: ResponseFlags): boolean => upstreamFlags.some((flag) => flags[flag] === true)

/** Anything that keeps an answer from arriving whole. */
export const isCut = (flags: ResponseFlags): boolean =>
  leftByClient(flags) || isUpstreamFailure(flags) || gatewayFlags.some((flag) => flags[flag] === true)
