import { nodesOf, readPath } from '../chain-path.ts'
import { bytesPerKey, type Handle, type HandleOf, type HistoryStore } from '../history-store.ts'
import { addHandle, appendNode, settle } from './append-node.ts'
import { createMemoryLedger } from './memory-ledger.ts'
import type { HandleEntry } from './tenant-history.ts'

/** The history in this process, for one gateway. Beyond `maxBytes` of all tenants nothing more is stored. */
export const createMemoryHistoryStore = (options: {
  readonly maxBytes: number
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number
}): HistoryStore => {
  const ledger = createMemoryLedger({ now: Date.now, ...options })

  const handleOf = ({ tenant, name }: HandleOf): HandleEntry | undefined =>
    ledger.within(tenant, ({ history }) => history.handles.get(name))

  return {
    find: async (handle) => {
      const entry = handleOf(handle)
      return entry && copyOf(entry)
    },
    hold: async ({ tenant, name, turnId, lockMs }) =>
      ledger.within(tenant, ({ history, nowMs }) => {
        const entry = history.handles.get(name)
        if (entry === undefined) return { kind: 'unknown' }
        const { lock } = entry
        if (lock !== undefined && lock.turnId !== turnId && lock.untilMs > nowMs) return { kind: 'locked' }
        entry.lock = { turnId, untilMs: nowMs + lockMs }
        return { kind: 'held', handle: copyOf(entry) }
      }),
    release: async ({ turnId, ...handle }) => {
      const entry = handleOf(handle)
      if (entry?.lock?.turnId === turnId) entry.lock = undefined
    },
    read: async ({ tenant, names }) =>
      ledger.within(tenant, ({ history }) => names.map((name) => history.nodes.get(name)?.text)),
    append: async (node) => ledger.within(node.tenant, (at) => appendNode(ledger, node, at)),
    createConversation: async ({ tenant, name, sealed, ttlSeconds, maxTenantBytes }) =>
      ledger.within(tenant, ({ history, nowMs }) => {
        if (!ledger.hasRoom(history, bytesPerKey + sealed.length, maxTenantBytes)) return false
        addHandle(ledger, history, { name, path: '', chainBytes: 0, sealed, endsMs: nowMs + ttlSeconds * 1000 })
        return true
      }),
    reseal: async ({ sealed, ...handle }) => {
      const entry = handleOf(handle)
      if (entry === undefined) return false
      ledger.charge(entry, entry.bytes + sealed.length - entry.sealed.length)
      entry.sealed = sealed
      return true
    },
    replaceItems: async ({ conversation, node: name, before, items, lessBytes }) =>
      ledger.within(conversation.tenant, ({ history }) => {
        const entry = history.handles.get(conversation.name)
        const node = history.nodes.get(name)
        if (entry?.lock?.turnId !== conversation.turnId || node?.text.items !== before) return false
        ledger.charge(node, node.bytes + items.length - before.length)
        node.text = { ...node.text, items }
        entry.chainBytes -= lessBytes
        return true
      }),
    remove: async ({ tenant, name, kind, path }) =>
      ledger.within(tenant, ({ history, nowMs }) => {
        const entry = history.handles.get(name)
        if (entry === undefined) return { kind: 'unknown' }
        if (entry.path !== path) return { kind: 'moved' }
        ledger.drop(entry)
        const names = nodesOf(readPath(path))
        const node = history.nodes.get(names.at(-1) ?? '')
        if (node !== undefined && kind === 'response') {
          ledger.charge(node, node.bytes - (node.text.answer?.length ?? 0))
          node.text = { ...node.text, answer: undefined }
          node.ownMs = 0
        } else if (node !== undefined) node.convMs = 0
        settle(ledger, { history, nowMs }, names)
        return { kind: 'removed', rootGone: !history.nodes.has(names[0] ?? '') }
      }),
    forgetTenant: async (tenant) =>
      ledger.within(tenant, ({ history }) => {
        for (const entry of [...history.handles.values(), ...history.nodes.values()]) ledger.drop(entry)
      }),
  }
}

const copyOf = ({ path, chainBytes, sealed }: HandleEntry): Handle => ({ path, chainBytes, sealed })
