import type { FormerSecret } from '../crypto/former-secret.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import { createNodeAppender, type HistoryLimits, newRoot } from './append-node.ts'
import { chainOf, type OpenHandle, openHandle, readChain } from './chain-reader.ts'
import type { Conversations, Owned, StoredResponses } from './conversations.ts'
import { createConversations } from './create-conversations.ts'
import { createHistoryKeys } from './history-keys.ts'
import type { HistoryStore } from './history-store.ts'
import { openAnswer } from './node-text.ts'
import { removeHandle } from './remove-handle.ts'
import type { AppendOutcome, Continued, FinishedTurn, OpenOutcome, ResponseHistory } from './response-history.ts'

/** The history of a gateway process on a store, which all gateways of a deployment share. */
export const createResponseHistory = (options: {
  readonly store: HistoryStore
  readonly secret: string
  readonly former?: FormerSecret | undefined
  readonly limits: HistoryLimits
}): {
  readonly history: ResponseHistory
  readonly conversations: Conversations
  readonly responses: StoredResponses
} => {
  const { store, limits } = options
  const keys = createHistoryKeys(options.secret, options.former)
  const appendNode = createNodeAppender({ store, keys, limits })

  const find = async ({ tenant, id }: Owned): Promise<OpenHandle | undefined> => {
    const name = keys.nameOf(tenant, id)
    const handle = await store.find({ tenant, name })
    return handle && openHandle(keys, { tenant, id, name }, handle)
  }

  /** The handle that a turn continues; a conversation is held for it. */
  const holdOrFind = async (
    tenant: TenantKey,
    continued: Continued,
  ): Promise<OpenHandle | Exclude<OpenOutcome['kind'], 'found'>> => {
    if (continued.kind === 'response') return (await find({ tenant, id: continued.id })) ?? 'unknown'
    const { id, turnId, lockMs } = continued
    const name = keys.nameOf(tenant, id)
    const outcome = await store.hold({ tenant, name, turnId, lockMs })
    if (outcome.kind !== 'held') return outcome.kind
    return openHandle(keys, { tenant, id, name }, outcome.handle) ?? 'unknown'
  }

  const release: ResponseHistory['release'] = ({ tenant, conversationId, turnId }) =>
    store.release({ tenant, name: keys.nameOf(tenant, conversationId), turnId })

  const appendTurn = async (turn: FinishedTurn): Promise<AppendOutcome> => {
    const { tenant, after, responseId, response, inputItems, model, ttlSeconds } = turn
    const handle = after.kind === 'first' ? { root: after.root } : await find({ tenant, id: after.id })
    if (handle === undefined) return { kind: 'gone' }
    const outcome = await appendNode({
      tenant,
      after: handle,
      inputItems,
      answer: { id: responseId, response },
      model,
      ttlSeconds,
      turnId: after.kind === 'conversation' ? after.turnId : undefined,
    })
    return outcome.kind === 'stored' ? { kind: 'stored' } : outcome
  }

  return {
    history: {
      newRoot,
      release,
      open: async ({ tenant, continued }) => {
        const found = await holdOrFind(tenant, continued)
        if (typeof found === 'string') return { kind: found }
        const nodes = await readChain(store, found)
        return nodes === undefined ? { kind: 'unknown' } : { kind: 'found', chain: chainOf(found, nodes) }
      },
      append: async (turn) => {
        const outcome = await appendTurn(turn)
        const { tenant, after } = turn
        if (outcome.kind !== 'stored' && after.kind === 'conversation')
          await release({ tenant, conversationId: after.id, turnId: after.turnId })
        return outcome
      },
      get: async (owned) => {
        const found = await find(owned)
        const nodes = found && (await readChain(store, found))
        const own = nodes?.at(-1)
        if (found === undefined || nodes === undefined || own?.text.answer === undefined) return undefined
        const frame = await openAnswer(found.secrets.chainKey, own.name, own.text.answer)
        if (frame === undefined) return undefined
        const output = own.items.filter(({ side }) => side === 'output')
        const { items } = chainOf(found, nodes)
        return {
          response: `${frame.before}[${output.map(({ json }) => json).join(',')}]${frame.after}`,
          inputItems: items.slice(0, items.length - output.length),
        }
      },
    },
    conversations: createConversations({ store, keys, appendNode, find, limits }),
    responses: {
      remove: (owned) => removeHandle(store, 'response', () => find(owned)),
      forgetTenant: (tenant) => store.forgetTenant(tenant),
    },
  }
}
