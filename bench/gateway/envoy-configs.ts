import { parse, stringify } from 'yaml'
import { z } from 'zod'

/*
 * The references run on the repository's own envoy.yaml, reduced: same listener, same connection manager, same way to the same cluster of pods, so
 * that what is left out is what is measured.
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

/** How requests that never meet the gateway get to a pod: its timeout and retries, which no filter has a part in. */
const routeToPods = (typedConfig: unknown): unknown => {
  const [host] = routes.parse(typedConfig).route_config.virtual_hosts
  const route = host.routes.find((candidate) => candidate.route !== undefined)?.route
  if (route === undefined) throw new Error('envoy.yaml has no route to the pods')
  return route
}

const routerFilter = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
}

/** What a plugin that reads bodies asks of Envoy: both headers and the whole request body. */
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

const reduced = (
  text: string,
  parts: { readonly filters: readonly unknown[]; readonly clusters: readonly unknown[] },
) => {
  const whole = template.parse(parse(text))
  const [listener] = whole.static_resources.listeners
  const [chain] = listener.filter_chains
  const [manager] = chain.filters
  const { access_log: _log, local_reply_config: _replies, ...kept } = manager.typed_config
  const typedConfig = {
    ...kept,
    http_filters: parts.filters,
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
  return stringify(
    { ...whole, static_resources: { listeners: [reducedListener], clusters: parts.clusters } },
    { aliasDuplicateObjects: false },
  )
}

const clusterNamed = (text: string, name: string) => {
  const found = template.parse(parse(text)).static_resources.clusters.find((cluster) => cluster.name === name)
  if (found === undefined) throw new Error(`envoy.yaml has no cluster ${name}`)
  return found
}

/** Envoy and nothing behind it but the pods. Takes and returns YAML that `renderEnvoyConfig` can fill in. */
export const floorConfig = (text: string): string =>
  reduced(text, { filters: [routerFilter], clusters: [clusterNamed(text, 'pods'), gatewayCluster(text)] })

/** The minimal external processor in front of the pods. */
export const referenceConfig = (text: string): string =>
  reduced(text, {
    filters: [bufferedFilter, routerFilter],
    clusters: [clusterNamed(text, 'pods'), gatewayCluster(text)],
  })

/** Without health checks: the reference does not answer them, and the floor has nobody there. */
const gatewayCluster = (text: string): unknown => {
  const { health_checks: _checks, common_lb_config: _balancing, ...kept } = clusterNamed(text, 'gateway')
  return kept
}
