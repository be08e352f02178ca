import { parse, stringify } from 'yaml'
import { z } from 'zod'

/*
 * The references use a reduced envoy.yaml: same listener, connection manager, route timeout and cluster of pods. The removed parts are what is
 * measured.
 */

const json = z.record(z.string(), z.unknown())

const template = z.looseObject({
  static_resources: z.looseObject({
    listeners: z.tuple([
      z.looseObject({
        filter_chains: z.tuple([z.looseObject({ filters: z.tuple([z.looseObject({ typed_config: json })]) })]),
      }),
    ]),
    clusters: z.array(z.looseObject({ name: z.string() })),
  }),
})

const routes = z.object({
  route_config: z.object({
    virtual_hosts: z.tuple([z.object({ routes: z.array(z.object({ match: z.unknown(), route: json.optional() })) })]),
  }),
})

/** The route action of requests that bypass the gateway: its cluster, timeout and retries. */
const routeToPods = (typedConfig: unknown): unknown => {
  const [host] = routes.parse(typedConfig).route_config.virtual_hosts
  const found = host.routes.findLast(({ route }) => route !== undefined)
  if (found === undefined) throw new Error('no route of envoy.yaml leads to a cluster')
  return found.route
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

/** A rendered envoy.yaml with other HTTP filters, one route, and without access log, error bodies and header mutations. */
const reduced = (text: string, filters: readonly unknown[]): string => {
  const whole = template.parse(parse(text))
  const { listeners, clusters } = whole.static_resources
  const [listener] = listeners
  const [chain] = listener.filter_chains
  const [manager] = chain.filters
  const {
    access_log: _log,
    local_reply_config: _replies,
    early_header_mutation_extensions: _mutations,
    ...kept
  } = manager.typed_config
  const typedConfig = {
    ...kept,
    http_filters: filters,
    route_config: {
      name: 'routes',
      virtual_hosts: [
        {
          name: 'engines',
          domains: ['*'],
          request_body_buffer_limit: 16_777_216,
          routes: [{ match: { prefix: '/' }, route: routeToPods(manager.typed_config) }],
        },
      ],
    },
  }
  const reducedListener = {
    ...listener,
    filter_chains: [{ ...chain, filters: [{ ...manager, typed_config: typedConfig }] }],
  }
  // Without health checks: the reference does not answer them, and the floor has no gateway.
  const { health_checks: _checks, common_lb_config: _balancing, ...gateway } = clusterNamed(clusters, 'gateway')
  return stringify(
    {
      ...whole,
      static_resources: { listeners: [reducedListener], clusters: [clusterNamed(clusters, 'pods'), gateway] },
    },
    { aliasDuplicateObjects: false },
  )
}

const clusterNamed = <Cluster extends { readonly name: string }>(
  clusters: readonly Cluster[],
  name: string,
): Cluster => {
  const found = clusters.find((cluster) => cluster.name === name)
  if (found === undefined) throw new Error(`envoy.yaml has no cluster ${name}`)
  return found
}

/** Envoy with the pods alone. Takes what `renderEnvoyConfig` returns. */
export const floorConfig = (text: string): string => reduced(text, [routerFilter])

/** Envoy with the minimal external processor. Takes what `renderEnvoyConfig` returns. */
export const referenceConfig = (text: string): string => reduced(text, [bufferedFilter, routerFilter])
