import { isMap, isSeq, parseDocument } from 'yaml'

/*
 * The references use a reduced envoy.yaml: same listener, connection manager, route timeout and cluster of pods. The removed parts are what is
 * measured.
 */

const manager = ['static_resources', 'listeners', 0, 'filter_chains', 0, 'filters', 0, 'typed_config'] as const
const host = [...manager, 'route_config', 'virtual_hosts', 0] as const

/** A rendered envoy.yaml with other HTTP filters, one route, and without access log, error bodies and header mutations. */
const reduced = (text: string, httpFilters: readonly unknown[]): string => {
  const document = parseDocument(text)
  // All routes to the pods have the same action: cluster, timeout and retries.
  const route = document.getIn([...host, 'routes', 0, 'route'], true)
  document.setIn([...host, 'routes'], document.createNode([{ match: { prefix: '/' }, route }]))
  document.setIn([...manager, 'http_filters'], document.createNode(httpFilters))
  document.deleteIn([...host, 'request_headers_to_remove'])
  for (const name of ['access_log', 'local_reply_config', 'early_header_mutation_extensions'])
    document.deleteIn([...manager, name])
  const clusters = document.getIn(['static_resources', 'clusters'])
  if (!isSeq(clusters)) throw new Error('envoy.yaml has no clusters')
  const clusterNamed = (name: string) => clusters.items.find((item) => isMap(item) && item.get('name') === name)
  const [pods, gateway] = [clusterNamed('pods'), clusterNamed('gateway')]
  if (!isMap(pods) || !isMap(gateway)) throw new Error('envoy.yaml has no cluster pods or gateway')
  // The reference answers no health checks, and the floor has no gateway.
  for (const name of ['health_checks', 'common_lb_config']) gateway.delete(name)
  clusters.items = [pods, gateway]
  return document.toString()
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
