import { batchesOf } from '../async/batches-of.ts'
import { nodesOf, readPath } from './chain-path.ts'
import type { Owned } from './conversations.ts'
import type { HandleSecrets, HistoryKeys } from './history-keys.ts'
import { type Handle, type HistoryStore, maxNodesPerRead, type NodeText } from './history-store.ts'
import { type NodeItems, openItems } from './node-text.ts'
import type { Chain } from './response-history.ts'

/** A handle, opened by the id that leads to it. */
export interface OpenHandle extends Owned {
  readonly name: string
  readonly handle: Handle
  readonly secrets: HandleSecrets
  /** Names of its nodes, from the root. */
  readonly nodes: readonly string[]
}

/** A node with its text opened. */
export interface ChainNode extends NodeItems {
  readonly name: string
  readonly text: NodeText
}

/** Undefined: sealed with another secret, or damaged. */
export const openHandle = (
  keys: HistoryKeys,
  named: Pick<OpenHandle, 'tenant' | 'id' | 'name'>,
  handle: Handle,
): OpenHandle | undefined => {
  const secrets = keys.openHandle(named.tenant, named.id, handle.sealed)
  return secrets && { ...named, handle, secrets, nodes: nodesOf(readPath(handle.path)) }
}

/** All nodes of a chain. Undefined: one is gone, since its handle was read before. */
export const readChain = async (
  store: Pick<HistoryStore, 'read'>,
  { tenant, nodes, secrets }: OpenHandle,
): Promise<readonly ChainNode[] | undefined> => {
  const chain: ChainNode[] = []
  for (const names of batchesOf(nodes, maxNodesPerRead)) {
    const texts = await store.read({ tenant, names })
    const opened = await Promise.all(
      names.map(async (name, index) => {
        const text = texts[index]
        const items = text && (await openItems(secrets.chainKey, name, text.items))
        return text && items && { name, text, ...items }
      }),
    )
    const found = opened.filter((node) => node !== undefined)
    if (found.length < names.length) return undefined
    chain.push(...found)
  }
  return chain
}

export const chainOf = ({ secrets, handle }: OpenHandle, nodes: readonly ChainNode[]): Chain => ({
  root: secrets.root,
  items: nodes.flatMap(({ items }) => items.map(({ id, json }) => ({ id, json }))),
  bytes: handle.chainBytes,
})

/** The models that a chain's turns asked for, each once, in the order of their first turns. */
export const modelsOf = (nodes: readonly ChainNode[]): readonly string[] => [
  ...new Set(nodes.flatMap(({ model }) => model ?? [])),
]
