import { type Document, isSeq, parseDocument } from 'yaml'
import { clusters, httpFilters, indexOfNamed, manager } from '../../playground/envoy-config.ts'

/*
 * The references use a reduced envoy.yaml: same listener, connection manager, route timeout and cluster of pods. The
 * removed parts are what is measured.
 */

const host = [...manager, 'route_config', 'virtual_hosts', 0] as const
const router = 'envoy.filters.http.router'
const extproc = 'envoy.filters.http.ext_proc'

/** A rendered envoy.yaml with these of its HTTP filters, one route, no access log, error bodies or header mutations. */
const reduced = (text: string, filters: readonly string[]): Document => {
  const document = parseDocument(text)
  // All routes to the pods have the same action: cluster, timeout and retries.
  const route = document.getIn([...host, 'routes', 0, 'route'], true)
  document.setIn([...host, 'routes'], document.createNode([{ match: { prefix: '/' }, route }]))
  document.deleteIn([...host, 'request_headers_to_remove'])
  for (const name of ['access_log', 'local_reply_config', 'early_header_mutation_extensions'])
    document.deleteIn([...manager, name])
  keep(document, httpFilters, filters)
  keep(document, clusters, ['pods', 'gateway'])
  // The reference answers no health checks, and the floor has no gateway.
  for (const name of ['health_checks', 'common_lb_config']) document.deleteIn([...clusters, 1, name])
  return document
}

/** Removes the other entries of a list. @throws Error when it lacks one of these */
const keep = (document: Document, path: typeof clusters, names: readonly string[]): void => {
  const list = document.getIn(path)
  const indices = names.map((name) => indexOfNamed(document, path, name))
  if (!isSeq(list) || indices.includes(-1)) throw new Error(`envoy.yaml lacks one of ${names.join(', ')}`)
  list.items = indices.map((index) => list.items[index])
}

/** The messages of a plugin that reads bodies: both headers and the whole request body. */
const withBody = {
  request_header_mode: 'SEND',
  response_header_mode: 'SEND',
  request_body_mode: 'BUFFERED',
  response_body_mode: 'NONE',
  request_trailer_mode: 'SKIP',
  response_trailer_mode: 'SKIP',
}

/** Envoy with the pods alone. Takes what `readEnvoyConfig` returns. */
export const floorConfig = (text: string): string => reduced(text, [router]).toString()

/** Envoy with the minimal external processor. Takes what `readEnvoyConfig` returns. */
export const referenceConfig = (text: string): string => {
  const document = reduced(text, [extproc, router])
  document.setIn([...httpFilters, 0, 'typed_config', 'processing_mode'], document.createNode(withBody))
  return document.toString()
}
