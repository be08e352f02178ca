import type { CacheSalts } from './cache-salts.ts'
import type { KvConnector } from './kv-connector.ts'
import type { KvLog } from './kv-log.ts'
import { loadFunction, memberOf } from './load-function.ts'

/** What the gateway gives a connector of one's own. Anything else it takes from where it likes, such as the environment. */
export interface ConnectorParts {
  /** `host:port` of every pod that is configured now, ready or not. */
  readonly pods: () => readonly string[]
  /** Names of KV that nobody can guess, for engines that keep KV of different salts apart. */
  readonly salts: CacheSalts
  readonly log: KvLog
}

/**
 * Loads a connector of one's own: an ES module that exports `createKvConnector`, a function that receives {@link ConnectorParts} and returns a
 * {@link KvConnector} or a promise of one. docs/connectors.md explains it.
 *
 * @throws Error when there is no such module, or it exports something else.
 */
export const loadConnector = async (modulePath: string, parts: ConnectorParts): Promise<KvConnector> => {
  const create = await loadFunction(modulePath, 'createKvConnector')
  const connector: unknown = await create(parts)
  if (isConnector(connector)) return connector
  throw new Error(`createKvConnector of ${modulePath} does not return an object with a name and a method prepare`)
}

const isConnector = (value: unknown): value is KvConnector =>
  typeof memberOf(value, 'name') === 'string' && typeof memberOf(value, 'prepare') === 'function'
