import { nanoid } from 'nanoid'
import { type AppendNode, type HistoryLimits, newRoot, newSecrets } from './append-node.ts'
import { chainOf, type OpenHandle, openHandle, readChain } from './chain-reader.ts'
import type { Conversation, Conversations, Owned } from './conversations.ts'
import type { HandleSecrets, HistoryKeys } from './history-keys.ts'
import type { HistoryStore } from './history-store.ts'
import { sealItems } from './node-text.ts'
import { removeHandle } from './remove-handle.ts'

/** Of a change without a turn. */
const lockMs = 10_000

export const createConversations = (parts: {
  readonly store: HistoryStore
  readonly keys: HistoryKeys
  readonly appendNode: AppendNode
  readonly limits: Pick<HistoryLimits, 'maxTenantBytes'>
  readonly find: (owned: Owned) => Promise<OpenHandle | undefined>
}): Conversations => {
  const { store, keys, appendNode, find, limits } = parts

  /** Changes a conversation that no turn holds. */
  const holding = async <T>(
    { tenant, id }: Owned,
    change: (found: OpenHandle, turnId: string) => Promise<T>,
  ): Promise<T | { readonly kind: 'unknown' } | { readonly kind: 'locked' }> => {
    const turnId = nanoid()
    const name = keys.nameOf(tenant, id)
    const outcome = await store.hold({ tenant, name, turnId, lockMs })
    if (outcome.kind !== 'held') return outcome
    try {
      const found = openHandle(keys, { tenant, id, name }, outcome.handle)
      return found === undefined ? { kind: 'unknown' } : await change(found, turnId)
    } finally {
      await store.release({ tenant, name, turnId })
    }
  }

  const addItems: Conversations['addItems'] = ({ items: inputItems, ttlSeconds, ...owned }) =>
    holding(owned, async (after, turnId) => {
      const { tenant } = owned
      const outcome = await appendNode({
        tenant,
        after,
        inputItems,
        answer: undefined,
        model: undefined,
        ttlSeconds,
        turnId,
      })
      switch (outcome.kind) {
        case 'stored':
          return { kind: 'added', items: outcome.items } as const
        case 'limited':
          return outcome
        case 'gone':
          return { kind: 'unknown' } as const
        case 'exists':
        case 'unreadable':
          throw new Error(`The items of a conversation are ${outcome.kind}`)
      }
    })

  const remove: Conversations['remove'] = (owned) => removeHandle(store, 'conversation', () => find(owned))

  return {
    addItems,
    remove,
    create: async ({ tenant, items, metadata, ttlSeconds }) => {
      const id = `conv_${nanoid(48)}`
      const secrets = newSecrets(newRoot(), metadata)
      const sealed = keys.sealHandle(tenant, id, secrets)
      const name = keys.nameOf(tenant, id)
      const isRoom = await store.createConversation({
        tenant,
        name,
        sealed,
        ttlSeconds,
        maxTenantBytes: limits.maxTenantBytes,
      })
      if (!isRoom) return { kind: 'limited', limit: 'tenant-bytes' }
      if (items.length > 0) {
        const added = await addItems({ tenant, id, items, ttlSeconds })
        if (added.kind === 'limited') {
          await remove({ tenant, id })
          return added
        }
      }
      return { kind: 'created', conversation: viewOf(id, secrets) }
    },
    get: async (owned) => {
      const found = await find(owned)
      return found && viewOf(owned.id, found.secrets)
    },
    setMetadata: async ({ metadata, ...owned }) => {
      const found = await find(owned)
      if (found === undefined) return undefined
      const secrets = { ...found.secrets, metadata }
      const sealed = keys.sealHandle(owned.tenant, owned.id, secrets)
      const isThere = await store.reseal({ tenant: owned.tenant, name: found.name, sealed })
      return isThere ? viewOf(owned.id, secrets) : undefined
    },
    items: async (owned) => {
      const found = await find(owned)
      const nodes = found && (await readChain(store, found))
      return found && nodes && chainOf(found, nodes).items
    },
    removeItem: ({ itemId, ...owned }) =>
      holding(owned, async (found, turnId) => {
        const nodes = await readChain(store, found)
        if (nodes === undefined) return { kind: 'unknown' } as const
        const node = nodes.find(({ items }) => items.some(({ id }) => id === itemId))
        const item = node?.items.find(({ id }) => id === itemId)
        if (node === undefined || item === undefined) return { kind: 'unknown-item' } as const
        const items = node.items.filter((other) => other !== item)
        const isReplaced = await store.replaceItems({
          conversation: { tenant: owned.tenant, name: found.name, turnId },
          node: node.name,
          before: node.text.items,
          items: await sealItems(found.secrets.chainKey, node.name, { items, model: node.model }),
          lessBytes: Buffer.byteLength(item.json),
        })
        return isReplaced
          ? ({ kind: 'removed', conversation: viewOf(owned.id, found.secrets) } as const)
          : ({ kind: 'unknown' } as const)
      }),
  }
}

const viewOf = (id: string, { createdAt, metadata }: HandleSecrets): Conversation => ({ id, createdAt, metadata })
