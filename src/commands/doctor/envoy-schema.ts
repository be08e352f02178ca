import { z } from 'zod'

/** The parts of an Envoy's configuration that the checks read, as its config dump has them: what is unset is missing. */

/** `600s`, `0.020s` as seconds. */
const seconds = z.string().transform((text) => Number.parseFloat(text))
/** Protobuf's JSON has 64-bit numbers as texts. */
const count = z.coerce.number()
const typed = z.looseObject({ '@type': z.string().default('') })
const headerName = z.object({ name: z.string() })
const namesToRemove = z.array(z.string()).default([])
const filterConfigs = z.record(z.string(), typed).default({})

const route = z.object({
  match: z.looseObject({
    headers: z.array(headerName).default([]),
    path: z.string().optional(),
    prefix: z.string().optional(),
    path_separated_prefix: z.string().optional(),
    safe_regex: z.object({ regex: z.string() }).optional(),
  }),
  route: z
    .looseObject({
      cluster: z.string().optional(),
      weighted_clusters: z.object({ clusters: z.array(headerName) }).optional(),
      timeout: seconds.optional(),
      idle_timeout: seconds.optional(),
    })
    .optional(),
  request_body_buffer_limit: count.optional(),
  request_headers_to_remove: namesToRemove,
  typed_per_filter_config: filterConfigs,
})

const virtualHost = z.object({
  name: z.string().default(''),
  routes: z.array(route).default([]),
  request_body_buffer_limit: count.optional(),
  request_headers_to_remove: namesToRemove,
  typed_per_filter_config: filterConfigs,
})

export const routeConfig = z.object({
  name: z.string().default(''),
  virtual_hosts: z.array(virtualHost).default([]),
  request_headers_to_remove: namesToRemove,
  typed_per_filter_config: filterConfigs,
})

const httpFilter = z.object({ name: z.string(), disabled: z.boolean().default(false), typed_config: typed.optional() })

const mutation = z.object({
  remove: z.string().optional(),
  append: z
    .object({
      header: z.object({ key: z.string(), value: z.string().default('') }),
      append_action: z.string().optional(),
    })
    .optional(),
})

export const managerSchema = z.object({
  http_filters: z.array(httpFilter).default([]),
  access_log: z.array(z.object({ typed_config: typed.optional() })).default([]),
  route_config: routeConfig.optional(),
  rds: z.object({ route_config_name: z.string() }).optional(),
  use_remote_address: z.boolean().default(false),
  normalize_path: z.boolean().default(false),
  merge_slashes: z.boolean().default(false),
  common_http_protocol_options: z.object({ headers_with_underscores_action: z.string().default('ALLOW') }).optional(),
  stream_idle_timeout: seconds.default(300),
  request_timeout: seconds.default(0),
  request_headers_timeout: seconds.default(0),
  early_header_mutation_extensions: z
    .array(z.object({ typed_config: z.looseObject({ mutations: z.array(mutation).default([]) }) }))
    .default([]),
})

export const extProcSchema = z.object({
  grpc_service: z.object({ envoy_grpc: z.object({ cluster_name: z.string() }).optional() }).optional(),
  failure_mode_allow: z.boolean().default(false),
  message_timeout: seconds.default(0.2),
  max_message_timeout: seconds.default(0),
  processing_mode: z
    .object({ request_header_mode: z.string().default('DEFAULT'), request_body_mode: z.string().default('NONE') })
    .prefault({}),
  forward_rules: z
    .object({
      allowed_headers: z
        .object({ patterns: z.array(z.object({ exact: z.string().optional() })).default([]) })
        .optional(),
    })
    .optional(),
  metadata_options: z
    .object({ receiving_namespaces: z.object({ untyped: z.array(z.string()).default([]) }).optional() })
    .optional(),
})

/** What a route changes of the filter. */
export const perRouteSchema = z.object({ overrides: z.record(z.string(), z.unknown()).optional() })

export const luaSchema = z.object({
  default_source_code: z
    .object({
      filename: z.string().optional(),
      inline_string: z.string().optional(),
      inline_bytes: z.string().optional(),
    })
    .optional(),
})

export const jwtSchema = z.object({
  providers: z
    .record(z.string(), z.object({ claim_to_headers: z.array(z.object({ header_name: z.string() })).default([]) }))
    .default({}),
})

const grpcService = z.object({ envoy_grpc: z.object({ cluster_name: z.string() }).optional() })

export const accessLogSchema = z.object({
  body: z.object({ string_value: z.string().default('') }).optional(),
  common_config: z.object({ grpc_service: grpcService.optional() }).optional(),
  grpc_service: grpcService.optional(),
})

const limit = z.number().optional()

const overrideHost = z.looseObject({
  '@type': z.string().default(''),
  override_host_sources: z
    .array(
      z.object({
        header: z.string().optional(),
        metadata: z.object({ key: z.string(), path: z.array(z.object({ key: z.string() })).default([]) }).optional(),
      }),
    )
    .default([]),
})

export const clusterSchema = z.object({
  name: z.string(),
  circuit_breakers: z
    .object({
      thresholds: z
        .array(
          z.object({
            priority: z.string().default('DEFAULT'),
            max_connections: limit,
            max_pending_requests: limit,
            max_requests: limit,
            max_retries: limit,
          }),
        )
        .default([]),
    })
    .optional(),
  /** `EDS`: its endpoints come from a control plane. */
  type: z.string().optional(),
  health_checks: z.array(z.unknown()).default([]),
  common_lb_config: z
    .object({ healthy_panic_threshold: z.object({ value: z.number().default(0) }).optional() })
    .optional(),
  load_balancing_policy: z
    .object({
      policies: z
        .array(z.object({ typed_extension_config: z.object({ typed_config: overrideHost.optional() }) }))
        .default([]),
    })
    .optional(),
})

/** What Envoy started with. */
export const bootstrapSchema = z.object({
  grpc_async_client_manager_config: z.object({ max_cached_entry_idle_duration: seconds.optional() }).optional(),
})

export type Route = z.output<typeof route>
export type VirtualHost = z.output<typeof virtualHost>
export type RouteConfig = z.output<typeof routeConfig>
export type Manager = z.output<typeof managerSchema>
export type HttpFilter = z.output<typeof httpFilter>
export type ExtProc = z.output<typeof extProcSchema>
export type Cluster = z.output<typeof clusterSchema>
