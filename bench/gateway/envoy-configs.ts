import { parse, stringify } from 'yaml'
import { z } from 'zod'

/*
 * The references use a reduced envoy.yaml: same listener, connection manager, route timeout and cluster of pods. The removed parts are what is
 * measured.
 */

const host = z.object({
  name: z.string(),
  domains: z.array(z.string()),
  request_body_buffer_limit: z.number(),
  routes: z.array(z.looseObject({ route: z.unknown().optional() })),
})
const manager = z.looseObject({
  http_filters: z.array(z.unknown()),
  route_config: z.looseObject({ virtual_hosts: z.tuple([host]) }),
})
const cluster = z.looseObject({ name: z.string() })
const filters = z.tuple([z.looseObject({ typed_config: manager })])
const listener = z.looseObject({ filter_chains: z.tuple([z.looseObject({ filters })]) })
const configuration = z.looseObject({
  static_resources: z.looseObject({ listeners: z.tuple([listener]), clusters: z.array(cluster) }),
})

/** A rendered envoy.yaml with other HTTP filters, one route, and without access log, error bodies and header mutations. */
const reduced = (text: string, httpFilters: readonly unknown[]): string => {
  const whole = configuration.parse(parse(text))
  const { static_resources: resources } = whole
  const { typed_config: typedConfig } = resources.listeners[0].filter_chains[0].filters[0]
  const [{ routes, ...engines }] = typedConfig.route_config.virtual_hosts
  // The last route is that of requests that bypass the gateway: its cluster, timeout and retries are kept.
  const route = routes.findLast((candidate) => candidate.route !== undefined)?.route
  typedConfig.route_config = { virtual_hosts: [{ ...engines, routes: [{ match: { prefix: '/' }, route }] }] }
  typedConfig.http_filters = [...httpFilters]
  for (const name of ['access_log', 'local_reply_config', 'early_header_mutation_extensions']) delete typedConfig[name]
  resources.clusters = resources.clusters.filter(({ name }) => name === 'pods' || name === 'gateway')
  for (const gateway of resources.clusters.filter(({ name }) => name === 'gateway')) {
    // The reference answers no health checks, and the floor has no gateway.
    delete gateway['health_checks']
    delete gateway['common_lb_config']
  }
  return stringify(whole, { aliasDuplicateObjects: false })
}

const routerFilter = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
}

/** The messages of a plugin that reads bodies: both headers and the whole request body. */
const bufferedFilter = {
  name: 'envoy.filters.http.ext_proc',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor',
    grpc_service: { envoy_grpc: { cluster_name: 'gateway' } },
    failure_mode_allow: false,
    message_timeout: '2s',
    processing_mode: {
      request_header_mode: 'SEND',
      response_header_mode: 'SEND',
      request_body_mode: 'BUFFERED',
      response_body_mode: 'NONE',
      request_trailer_mode: 'SKIP',
      response_trailer_mode: 'SKIP',
    },
  },
}

/** Envoy with the pods alone. Takes what `readEnvoyConfig` returns. */
export const floorConfig = (text: string): string => reduced(text, [routerFilter])

/** Envoy with the minimal external processor. Takes what `readEnvoyConfig` returns. */
export const referenceConfig = (text: string): string => reduced(text, [bufferedFilter, routerFilter])
