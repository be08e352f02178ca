import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Document, isMap, isSeq, parseDocument, visit } from 'yaml'
import { packageRoot } from './paths.ts'

/** Envoy's configurations in this package: how Envoy is wired to the gateway. */
export type EnvoyConfigFile = 'envoy.yaml' | 'deploy/envoy/picker.yaml'

/** Where the parts of one Envoy meet. Addresses are `host:port`. */
export interface EnvoyAddresses {
  readonly listen: string
  /** Default: any free port of 127.0.0.1. */
  readonly admin?: string | undefined
  readonly pods: readonly string[]
  /** One or several gateway processes. */
  readonly gateways: readonly string[]
  /** Members of request bodies that may name a conversation. Default: none. */
  readonly bodyNames?: readonly string[] | undefined
  /** The gateway's connector. Default: `llamacpp-slots`. With any other, requests without a session are not changed. */
  readonly connector?: string | undefined
  /** The gateway keeps responses. Default: false. */
  readonly keepsResponses?: boolean | undefined
}

/**
 * One of the package's configurations with other addresses, and an absolute path of the Lua file; everything else is
 * unchanged.
 * @throws Error when the file lacks an expected part
 */
export const readEnvoyConfig = async (file: EnvoyConfigFile, addresses: EnvoyAddresses): Promise<string> => {
  const document = parseDocument(await readFile(join(packageRoot(), file), 'utf8'))
  const set = (path: Path, value: unknown): void => {
    if (!document.hasIn(path)) throw new Error(`${file} has no ${path.join('.')}`)
    document.setIn(path, document.createNode(value))
  }
  const setEndpoints = (cluster: string, hosts: readonly string[]): void => {
    const endpoints = hosts.map((host) => ({ endpoint: { address: addressOf(host) } }))
    const index = indexOfNamed(document, clusters, cluster)
    set([...clusters, index, 'load_assignment', 'endpoints'], [{ lb_endpoints: endpoints }])
  }
  set(['admin', 'address'], addressOf(addresses.admin ?? '127.0.0.1:0'))
  set([...listener, 'address'], addressOf(addresses.listen))
  setEndpoints('pods', addresses.pods)
  setEndpoints('gateway', addresses.gateways)
  for (const name of ['session_names', 'envoy.filters.http.lua']) {
    const lua = indexOfNamed(document, httpFilters, name)
    // deploy/envoy/picker.yaml has none.
    if (lua === -1) continue
    const path = [...httpFilters, lua, 'typed_config', 'default_source_code', 'filename']
    // Envoy resolves a relative name against its working directory.
    set(path, resolve(packageRoot(), String(document.getIn(path))))
  }
  if ((addresses.connector ?? 'llamacpp-slots') !== 'llamacpp-slots') forwardUnchanged(document)
  if (addresses.bodyNames !== undefined) readBodyNames(document, addresses.bodyNames)
  const text = document.toString({ lineWidth: 0 })
  return addresses.keepsResponses === true ? withResponsesRoute(text) : text
}

/** The edit that envoy.yaml describes for responses that are kept. deploy/envoy/picker.yaml has no such route. */
const withResponsesRoute = (text: string): string =>
  text.replace(/^( *)# (- \{ match: \{ path: \/v1\/responses \}.*)$/m, '$1$2')

/** The edit that envoy.yaml describes for engines that keep requests without a session apart by themselves. */
const forwardUnchanged = (document: Document): void => {
  document.deleteIn([...manager, 'route_config', 'virtual_hosts', 0, 'typed_per_filter_config'])
  const off = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true }
  editBypass(document, { 'envoy.filters.http.lua': off })
}

/** The edit that envoy.yaml describes for names in the body. */
const readBodyNames = (document: Document, members: readonly string[]): void => {
  const filters = 'type.googleapis.com/envoy.extensions.filters.http'
  const off = (filter: string): unknown => ({ '@type': `${filters}.${filter}`, disabled: true })
  const context = { members: members.join(' '), pick: true }
  const names = { '@type': `${filters}.lua.v3.LuaPerRoute`, filter_context: context }
  editBypass(document, { 'envoy.filters.http.ext_proc': off('ext_proc.v3.ExtProcPerRoute'), session_names: names })
  // A filter that the first route disables altogether does not run on the route that the name leads to.
  editBypass(document, { 'envoy.filters.http.lua': off('lua.v3.LuaPerRoute') }, 'where it is set')
}

const editBypass = (
  document: Document,
  filters: Readonly<Record<string, unknown>>,
  where: 'always' | 'where it is set' = 'always',
): void => {
  visit(document, {
    Map: (_key, map) => {
      if (map.anchor !== 'bypass') return
      for (const [name, config] of Object.entries(filters)) {
        if (where === 'always' || map.has(name)) map.set(name, document.createNode(config))
      }
    },
  })
}

type Path = readonly (string | number)[]

export const clusters: Path = ['static_resources', 'clusters']
const listener: Path = ['static_resources', 'listeners', 0]
export const manager: Path = [...listener, 'filter_chains', 0, 'filters', 0, 'typed_config']
export const httpFilters: Path = [...manager, 'http_filters']

/** -1 when the list has no entry of that name. */
export const indexOfNamed = (document: Document, path: Path, name: string): number => {
  const list = document.getIn(path)
  return isSeq(list) ? list.items.findIndex((item) => isMap(item) && item.get('name') === name) : -1
}

const addressOf = (address: string): unknown => {
  const colonAt = address.lastIndexOf(':')
  const port = Number(address.slice(colonAt + 1))
  if (colonAt < 1 || !Number.isInteger(port)) throw new Error(`Not an address: ${address}`)
  return { socket_address: { address: address.slice(0, colonAt), port_value: port } }
}
