import { z } from 'zod'
import {
  bootstrapSchema,
  type Cluster,
  clusterSchema,
  type ExtProc,
  extProcSchema,
  type HttpFilter,
  type Manager,
  managerSchema,
  perRouteSchema,
  type Route,
  type RouteConfig,
  routeConfig,
  type VirtualHost,
} from './envoy-schema.ts'

/** What an Envoy's admin port says of it. */
export interface EnvoyFacts {
  /** `1.40.0` */
  readonly version: string
  /** Final values of runtime keys. */
  readonly runtime: ReadonlyMap<string, string>
  /** After this time without a new stream a worker thread drops its gRPC client, seconds. */
  readonly grpcClientIdleSeconds: number
  /** Where clients come in, and the gateway is asked. */
  readonly doors: readonly Door[]
  readonly clusters: readonly Cluster[]
  /** `host:port` of a cluster's endpoints, as Envoy resolved them. */
  readonly hosts: ReadonlyMap<string, readonly string[]>
  /** Counters. */
  readonly stats: ReadonlyMap<string, number>
}

/** An HTTP connection manager with the gateway as external processor. */
export interface Door {
  /** The listener's name. */
  readonly name: string
  readonly manager: Manager
  readonly routes: RouteConfig
  /** `per_connection_buffer_limit_bytes` */
  readonly bufferLimitBytes: number
  /** How the gateway is asked: one, with Envoy Gateway one for each policy, with Istio one for each route. */
  readonly extProcs: readonly GatewayFilter[]
  /** The gateway is an endpoint picker: Envoy sends it all bodies, and needs neither Lua nor an access log. */
  readonly isPicker: boolean
}

/** A filter that asks the gateway. */
export interface GatewayFilter {
  readonly filter: HttpFilter
  readonly config: ExtProc
}

/** A route that leads to engines. */
export interface ForwardingRoute {
  readonly host: VirtualHost
  readonly route: Route
  readonly action: NonNullable<Route['route']>
  /** `/v1/completions with x-session-id` */
  readonly label: string
}

/** Answers of an Envoy's admin port, as JSON. */
export interface EnvoyAnswers {
  /** `/config_dump?include_eds` */
  readonly configDump: unknown
  /** `/server_info` */
  readonly serverInfo: unknown
  /** `/clusters?format=json` */
  readonly clusters: unknown
  /** `/runtime` */
  readonly runtime: unknown
  /** `/stats?format=json` */
  readonly stats: unknown
}

const chain = z.object({
  filters: z
    .array(z.object({ typed_config: z.looseObject({ '@type': z.string().default('') }).optional() }))
    .default([]),
})
const listener = z.object({
  name: z.string().default(''),
  filter_chains: z.array(chain).default([]),
  default_filter_chain: chain.optional(),
  per_connection_buffer_limit_bytes: z.number().default(1_048_576),
})

/** Envoy's own, where the bootstrap says nothing. */
const defaultGrpcClientIdleSeconds = 50

const dumpSchema = z.object({
  configs: z.array(
    z.object({
      bootstrap: bootstrapSchema.optional(),
      static_listeners: z.array(z.object({ listener })).default([]),
      dynamic_listeners: z.array(z.object({ active_state: z.object({ listener }).optional() })).default([]),
      static_clusters: z.array(z.object({ cluster: clusterSchema })).default([]),
      dynamic_active_clusters: z.array(z.object({ cluster: clusterSchema })).default([]),
      static_route_configs: z.array(z.object({ route_config: routeConfig })).default([]),
      dynamic_route_configs: z.array(z.object({ route_config: routeConfig.optional() })).default([]),
    }),
  ),
})
const socketAddress = z.object({ address: z.string(), port_value: z.number() })
const answersSchema = z.object({
  configDump: dumpSchema,
  serverInfo: z.object({ version: z.string() }),
  clusters: z.object({
    cluster_statuses: z
      .array(
        z.object({
          name: z.string(),
          host_statuses: z
            .array(z.object({ address: z.object({ socket_address: socketAddress.optional() }).optional() }))
            .default([]),
        }),
      )
      .default([]),
  }),
  runtime: z.object({ entries: z.record(z.string(), z.object({ final_value: z.string() })).default({}) }),
  stats: z.object({
    stats: z.array(z.object({ name: z.string().optional(), value: z.unknown().optional() })).default([]),
  }),
})

/** @throws ZodError where the answers are not those of an Envoy */
export const readEnvoyFacts = (answers: EnvoyAnswers): EnvoyFacts => {
  const { configDump, serverInfo, clusters, runtime, stats } = answersSchema.parse(answers)
  const { configs } = configDump
  const bootstrap = configs.find((config) => config.bootstrap !== undefined)?.bootstrap
  const listeners = configs.flatMap(({ static_listeners, dynamic_listeners }) => [
    ...static_listeners.map((one) => one.listener),
    ...dynamic_listeners.flatMap(({ active_state }) => active_state?.listener ?? []),
  ])
  const routeConfigs = configs.flatMap(({ static_route_configs, dynamic_route_configs }) => [
    ...static_route_configs.map(({ route_config }) => route_config),
    ...dynamic_route_configs.flatMap(({ route_config }) => route_config ?? []),
  ])
  return {
    version: /\/(\d+\.\d+\.\d+)/.exec(serverInfo.version)?.[1] ?? serverInfo.version,
    runtime: new Map(Object.entries(runtime.entries).map(([name, { final_value }]) => [name, final_value])),
    grpcClientIdleSeconds:
      bootstrap?.grpc_async_client_manager_config?.max_cached_entry_idle_duration ?? defaultGrpcClientIdleSeconds,
    doors: listeners.flatMap((one) => doorsOf(one, routeConfigs)),
    clusters: configs.flatMap(({ static_clusters, dynamic_active_clusters }) =>
      [...static_clusters, ...dynamic_active_clusters].map(({ cluster }) => cluster),
    ),
    hosts: new Map(
      clusters.cluster_statuses.map(({ name, host_statuses }) => [
        name,
        host_statuses.flatMap(({ address }) => {
          const { address: host, port_value: port } = address?.socket_address ?? {}
          return host === undefined ? [] : [host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`]
        }),
      ]),
    ),
    stats: new Map(
      stats.stats.flatMap(({ name, value }) =>
        name !== undefined && typeof value === 'number' ? [[name, value]] : [],
      ),
    ),
  }
}

const doorsOf = (one: z.output<typeof listener>, routeConfigs: readonly RouteConfig[]): readonly Door[] =>
  [...one.filter_chains, ...(one.default_filter_chain ? [one.default_filter_chain] : [])]
    .flatMap(({ filters }) => filters)
    .filter(({ typed_config: config }) => config?.['@type'].endsWith('.HttpConnectionManager'))
    .flatMap(({ typed_config: config }) => {
      const manager = managerSchema.parse(config)
      const named = routeConfigs.find(({ name }) => name === manager.rds?.route_config_name)
      const routes = manager.route_config ?? named ?? routeConfig.parse({})
      const extProcs = gatewayFilters(filtersOf(manager, 'ExternalProcessor'), routes)
      if (extProcs.length === 0) return []
      return {
        name: one.name,
        manager,
        routes,
        bufferLimitBytes: one.per_connection_buffer_limit_bytes,
        extProcs,
        isPicker: extProcs.some(({ config: one }) => bodyMode(one) === 'FULL_DUPLEX_STREAMED'),
      }
    })

/** How a filter sends bodies of requests. */
export const bodyMode = ({ processing_mode: mode }: ExtProc): string => mode.request_body_mode

/** Of several external processors those that may name pods and turns, else those whose cluster is called so, else all. */
const gatewayFilters = (filters: readonly HttpFilter[], routes: RouteConfig): readonly GatewayFilter[] => {
  const all = filters.flatMap((filter) => configsOf(filter, routes).map((config) => ({ filter, config })))
  const namingPods = all.filter(({ config }) =>
    config.metadata_options?.receiving_namespaces?.untyped.some((name) => name === 'ctx' || name === 'envoy.lb'),
  )
  const named = all.filter(({ config }) => config.grpc_service?.envoy_grpc?.cluster_name.includes('gateway'))
  return [namingPods, named].find(({ length }) => length > 0) ?? all
}

/** A filter as it asks. Istio's asks nobody by itself: its routes say whom, and how. */
const configsOf = (filter: HttpFilter, routes: RouteConfig): readonly ExtProc[] => {
  const own = extProcSchema.parse(filter.typed_config)
  if (own.processing_mode.request_header_mode !== 'SKIP') return [own]
  return forwardingRoutes({ routes }).flatMap((at) => {
    const { overrides } = perRouteSchema.parse(filterSetting({ routes }, at, filter.name) ?? {})
    return overrides === undefined ? [] : extProcSchema.parse({ ...filter.typed_config, ...overrides })
  })
}

/** Filters of a type, `Lua`. */
export const filtersOf = ({ http_filters: filters }: Manager, type: string): readonly HttpFilter[] =>
  filters.filter(({ typed_config: config }) => config?.['@type'].endsWith(`.${type}`))

/** The routes of a door that lead to engines. */
export const forwardingRoutes = ({ routes }: Pick<Door, 'routes'>): readonly ForwardingRoute[] =>
  routes.virtual_hosts.flatMap((host) =>
    host.routes.flatMap((route) =>
      route.route === undefined ? [] : [{ host, route, action: route.route, label: labelOf(route) }],
    ),
  )

const labelOf = ({ match }: Route): string => {
  const path = match.path ?? match.prefix ?? match.path_separated_prefix ?? match.safe_regex?.regex ?? 'any path'
  const headers = match.headers.map(({ name }) => name).filter((name) => name !== ':method')
  return headers.length === 0 ? path : `${path} with ${headers.join(', ')}`
}

/** What a route says of a filter: the most specific setting, of the route, its host or all routes. */
export const filterSetting = (
  door: Pick<Door, 'routes'>,
  { host, route }: Pick<ForwardingRoute, 'host' | 'route'>,
  filter: string,
): { readonly [member: string]: unknown } | undefined =>
  route.typed_per_filter_config[filter] ??
  host.typed_per_filter_config[filter] ??
  door.routes.typed_per_filter_config[filter]

/** Whether a filter runs on the requests of a route. */
export const runsOn = (door: Door, at: Pick<ForwardingRoute, 'host' | 'route'>, filter: HttpFilter): boolean => {
  const setting = filterSetting(door, at, filter.name)
  return setting === undefined ? !filter.disabled : setting['disabled'] !== true
}

/** Whether the gateway is asked about the requests of a route. */
export const asksGateway = (door: Door, at: Pick<ForwardingRoute, 'host' | 'route'>): boolean =>
  door.extProcs.some(({ filter }) => runsOn(door, at, filter))

/** The clusters to which a door's routes lead. */
export const engineClusters = (envoy: EnvoyFacts, door: Door): readonly Cluster[] => {
  const names = new Set(
    forwardingRoutes(door).flatMap(({ action: { cluster, weighted_clusters: weighted } }) => [
      ...(cluster === undefined ? [] : [cluster]),
      ...(weighted?.clusters.map(({ name }) => name) ?? []),
    ]),
  )
  return envoy.clusters.filter(({ name }) => names.has(name))
}
