import { membersOf } from '../json/members-of.ts'
import type { ConnectorDefinition } from './connector-definition.ts'
import type { KvConnector } from './kv-connector.ts'
import { created, isFunction, loadMember } from './load-member.ts'

/** What an operator's own module defines. It receives the shared options and the parts, as every connector does. */
export type LoadedConnector = Pick<ConnectorDefinition, 'name' | 'create'>

/**
 * Loads an operator's own connector: an ES module that exports `connector`. docs/connectors.md explains it.
 * @throws Error when there is no such module, or no such export; `create` throws when it gives no connector in time
 */
export const loadConnector = async (modulePath: string, createLimitMs?: number): Promise<LoadedConnector> => {
  const exported = await loadMember(modulePath, 'connector')
  if (!isDefinition(exported)) {
    throw new Error(`${modulePath} does not export an object connector with a name and a method create`)
  }
  return {
    name: exported.name,
    create: async (options, parts) => {
      const connector = await created(`create of ${modulePath}`, exported.create(options, parts), createLimitMs)
      if (isConnector(connector)) return connector
      throw new Error(`create of ${modulePath} does not return an object with a method prepare`)
    },
  }
}

const isDefinition = (value: unknown): value is LoadedConnector =>
  typeof membersOf(value)['name'] === 'string' && isFunction(membersOf(value)['create'])

const isConnector = (value: unknown): value is KvConnector => isFunction(membersOf(value)['prepare'])
