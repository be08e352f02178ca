import { required } from './connector-definition.ts'
import { llamacppSlots } from './llamacpp-slots/connector.ts'
import { lmcache } from './lmcache/connector.ts'
import { type LoadedConnector, loadConnector } from './load-connector.ts'
import { none } from './none/connector.ts'
import { prefixCache } from './prefix-cache/connector.ts'

/** Every connector of the gateway. A new one needs a folder and a line here; configuration, checks and docs follow. */
export const connectors = [llamacppSlots, lmcache, prefixCache, none] as const

type Definition = (typeof connectors)[number]

/** The connector that a pool selects. @throws Error when its module cannot be loaded */
export const selectedConnector = async (kv: {
  readonly connector: Definition['name']
  readonly connectorModule?: string | undefined
}): Promise<Definition | LoadedConnector> =>
  kv.connectorModule === undefined
    ? required(connectors.find(({ name }) => name === kv.connector))
    : loadConnector(kv.connectorModule)

type Intersection<Union> = (Union extends unknown ? (_: Union) => void : never) extends (_: infer All) => void
  ? All
  : never

/** The options of all connectors, by their names in `kv`. */
export const connectorOptions = Object.assign({}, ...connectors.map(({ options }) => options)) as Intersection<
  Definition['options']
>
