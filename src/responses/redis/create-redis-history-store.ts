import { hash } from 'node:crypto'
import { loadScript } from '../../redis/load-script.ts'
import { type RedisConnection, RedisUnavailableError } from '../../redis/redis-connection.ts'
import { nameOfTenant, type TenantName } from '../../sessions/session-directory.ts'
import type { TenantKey } from '../../sessions/session-record.ts'
import { StoreUnavailableError } from '../../sessions/session-store.ts'
import { nodesOf, readPath } from '../chain-path.ts'
import type { AppendNodeOutcome, Handle, HistoryStore, NodeText } from '../history-store.ts'

const folder = new URL('scripts/', import.meta.url)
const names = [
  'append',
  'create-conversation',
  'find',
  'forget',
  'hold',
  'list',
  'read',
  'release',
  'remove',
  'replace-items',
  'reseal',
] as const

/** Keys that one script removes: it holds up all others. */
const keysPerRemoval = 200

const appendOutcomes: ReadonlySet<unknown> = new Set<AppendNodeOutcome>(['stored', 'taken', 'exists', 'gone', 'full'])
const isAppendOutcome = (reply: unknown): reply is AppendNodeOutcome => appendOutcomes.has(reply)

const readHandle = (reply: unknown): Handle | undefined => {
  if (!Array.isArray(reply)) return undefined
  const [path, chainBytes, sealed] = reply
  return { path: String(path), chainBytes: Number(chainBytes), sealed: String(sealed) }
}

const readText = (reply: unknown): NodeText | undefined => {
  const [items, answer] = Array.isArray(reply) ? reply : []
  return typeof items === 'string' ? { items, answer: typeof answer === 'string' ? answer : undefined } : undefined
}

/**
 * The history in Redis (7.0 or newer), shared by any number of gateways. All keys of a tenant have its name as their hash
 * tag, and each script names the keys that it touches, as Redis Cluster wants it. Handles and nodes are hashes that Redis
 * expires by itself.
 */
export const createRedisHistoryStore = (connection: RedisConnection): HistoryStore => {
  const scripts = new Map(names.map((name) => [name, loadScript(folder, name)]))

  const run = async (
    name: (typeof names)[number],
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<unknown> => {
    const script = scripts.get(name)
    if (script === undefined) throw new Error(`No script ${name}`)
    return connection.run(script, keys, args).catch(toStoreFault)
  }

  const keysOf = (tenant: TenantKey | TenantName) => {
    const prefix = `${connection.keyPrefix}responses:{${nameOfTenant(tenant)}}:`
    return {
      /** The two of the ledger. */
      ledger: [`${prefix}i`, `${prefix}t`],
      handle: (name: string) => `${prefix}h${name}`,
      node: (name: string) => `${prefix}n${name}`,
      of: (suffix: string) => `${prefix}${suffix}`,
    }
  }

  return {
    find: async ({ tenant, name }) => readHandle(await run('find', [keysOf(tenant).handle(name)])),
    hold: async ({ tenant, name, turnId, lockMs }) => {
      const reply = await run('hold', [keysOf(tenant).handle(name)], [turnId, lockMs])
      if (reply === 'locked') return { kind: 'locked' }
      const handle = readHandle(reply)
      return handle === undefined ? { kind: 'unknown' } : { kind: 'held', handle }
    },
    release: async ({ tenant, name, turnId }) => {
      await run('release', [keysOf(tenant).handle(name)], [turnId])
    },
    read: async (nodes) => {
      const { node } = keysOf(nodes.tenant)
      const reply = await run('read', nodes.names.map(node))
      return Array.isArray(reply) ? reply.map(readText) : []
    },
    append: async ({ tenant, path, text, response, conversation, ttlSeconds, maxTenantBytes }) => {
      const { ledger, handle, node } = keysOf(tenant)
      const handles = [response, conversation].filter((each) => each !== undefined)
      const reached = response ?? conversation
      const reply = await run(
        'append',
        [...ledger, ...handles.map(({ name }) => handle(name)), ...path.map(node)],
        [
          ttlSeconds * 1000,
          maxTenantBytes,
          text.items,
          text.answer ?? '',
          reached?.path ?? '',
          reached?.chainBytes ?? 0,
          response?.sealed ?? '',
          conversation?.turnId ?? '',
        ],
      )
      if (!isAppendOutcome(reply)) throw new Error('The script append replied in an unknown form')
      return reply
    },
    createConversation: async ({ tenant, name, sealed, ttlSeconds, maxTenantBytes }) => {
      const { ledger, handle } = keysOf(tenant)
      return (
        (await run('create-conversation', [...ledger, handle(name)], [ttlSeconds * 1000, maxTenantBytes, sealed])) === 1
      )
    },
    reseal: async ({ tenant, name, sealed }) => {
      const { ledger, handle } = keysOf(tenant)
      return (await run('reseal', [...ledger, handle(name)], [sealed])) === 1
    },
    replaceItems: async ({ conversation, node: name, before, items, lessBytes }) => {
      const { ledger, handle, node } = keysOf(conversation.tenant)
      const keys = [...ledger, handle(conversation.name), node(name)]
      return (await run('replace-items', keys, [conversation.turnId, hash('sha1', before), items, lessBytes])) === 1
    },
    remove: async ({ tenant, name, kind, path }) => {
      const { ledger, handle, node } = keysOf(tenant)
      const keys = [...ledger, handle(name), ...nodesOf(readPath(path)).map(node)]
      const reply = await run('remove', keys, [kind === 'response' ? 'own' : 'conv', path])
      if (reply === 'unknown' || reply === 'moved') return { kind: reply }
      return { kind: 'removed', rootGone: reply === 'ended' }
    },
    forgetTenant: async (tenant) => {
      const { ledger, of } = keysOf(tenant)
      while (true) {
        const members = await run('list', ledger.slice(0, 1), [keysPerRemoval])
        if (!Array.isArray(members) || members.length === 0) return
        const texts = members.map(String)
        const keys = texts.map((member) => of(member.slice(member.indexOf(' ') + 1)))
        await run('forget', [...ledger, ...keys], texts)
      }
    },
  }
}

/** @throws StoreUnavailableError for a Redis that is unavailable; every other fault passes unchanged. */
const toStoreFault = (error: unknown): never => {
  if (!(error instanceof RedisUnavailableError)) throw error
  throw new StoreUnavailableError('The store of responses cannot be reached', { cause: error })
}
