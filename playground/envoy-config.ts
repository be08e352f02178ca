import { resolve } from 'node:path'
import { type Document, isMap, isSeq, parseDocument } from 'yaml'
import { packageRoot } from './paths.ts'

/** Where the parts of one Envoy meet. Addresses are `host:port`; a gateway may also be `unix:/path`. */
export interface EnvoyAddresses {
  readonly listen: string
  readonly admin: string
  readonly pods: readonly string[]
  /** One or several gateway processes. */
  readonly gateways: readonly string[]
}

/**
 * envoy.yaml with other addresses, and an absolute path of the Lua file; everything else is unchanged.
 * @throws Error when the template lacks an expected part
 */
export const renderEnvoyConfig = (template: string, addresses: EnvoyAddresses): string => {
  const document = parseDocument(template)
  if (document.errors.length > 0)
    throw new Error(`The Envoy configuration is not valid YAML: ${document.errors[0]?.message}`)
  setSocket(document, ['admin', 'address'], addresses.admin)
  setSocket(document, ['static_resources', 'listeners', 0, 'address'], addresses.listen)
  setEndpoints(document, 'pods', addresses.pods)
  setEndpoints(document, 'gateway', addresses.gateways)
  setFile(document, 'envoy.filters.http.lua', luaFile)
  // Only deploy/envoy/accelerated.yaml has it.
  if (indexOfNamed(document, httpFilters, 'envoy.filters.http.wasm') !== -1)
    setFile(document, 'envoy.filters.http.wasm', wasmFile)
  return document.toString({ lineWidth: 0 })
}

type Path = readonly (string | number)[]

const setSocket = (document: Document, path: Path, address: string): void => {
  if (!document.hasIn(path)) throw new Error(`The Envoy configuration has no ${path.join('.')}`)
  document.setIn(path, document.createNode(addressOf(address)))
}

const setEndpoints = (document: Document, cluster: string, addresses: readonly string[]): void => {
  const index = indexOfNamed(document, ['static_resources', 'clusters'], cluster)
  if (index === -1) throw new Error(`The Envoy configuration has no cluster ${cluster}`)
  const endpoints = addresses.map((address) => ({ endpoint: { address: addressOf(address) } }))
  document.setIn(
    ['static_resources', 'clusters', index, 'load_assignment', 'endpoints'],
    document.createNode([{ lb_endpoints: endpoints }]),
  )
}

const httpFilters: Path = [
  'static_resources',
  'listeners',
  0,
  'filter_chains',
  0,
  'filters',
  0,
  'typed_config',
  'http_filters',
]
const luaFile: Path = ['typed_config', 'default_source_code', 'filename']
const wasmFile: Path = ['typed_config', 'config', 'vm_config', 'code', 'local', 'filename']

/** Envoy resolves a relative name against its working directory. */
const setFile = (document: Document, filter: string, file: Path): void => {
  const path: Path = [...httpFilters, indexOfNamed(document, httpFilters, filter), ...file]
  const name = document.getIn(path)
  if (typeof name !== 'string') throw new Error(`The Envoy configuration has no file for ${filter}`)
  document.setIn(path, resolve(packageRoot(), name))
}

/** -1 when the list holds none of that name, or is none. */
const indexOfNamed = (document: Document, path: Path, name: string): number => {
  const list = document.getIn(path)
  return isSeq(list) ? list.items.findIndex((item) => isMap(item) && item.get('name') === name) : -1
}

const addressOf = (address: string): unknown => {
  if (address.startsWith('unix:')) return { pipe: { path: address.slice('unix:'.length) } }
  const colonAt = address.lastIndexOf(':')
  const port = Number(address.slice(colonAt + 1))
  if (colonAt < 1 || !Number.isInteger(port)) throw new Error(`Not an address: ${address}`)
  return { socket_address: { address: address.slice(0, colonAt), port_value: port } }
}
