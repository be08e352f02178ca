import { expect } from '@jest/globals'
import { createFormerSecret } from '../../../src/crypto/former-secret.ts'
import type { HistoryLimits } from '../../../src/responses/append-node.ts'
import { createResponseHistory } from '../../../src/responses/create-response-history.ts'
import type { HistoryStore } from '../../../src/responses/history-store.ts'
import type { Chain, FinishedTurn } from '../../../src/responses/response-history.ts'
import { type TenantName, tenantNameOf } from '../../../src/sessions/session-directory.ts'
import type { TenantKey } from '../../../src/sessions/session-record.ts'

export const alice = 'alice'.padEnd(43, '-') as TenantKey
export const bob = 'bob'.padEnd(43, '-') as TenantKey

/** As operators name a tenant. */
export const nameOf = (tenant: TenantKey): TenantName => {
  const name = tenantNameOf(tenant)
  if (name === undefined) throw new Error('No tenant')
  return name
}

export const testLimits: HistoryLimits = {
  maxItemBytes: 100_000,
  maxConversationBytes: 1_000_000,
  maxTenantBytes: 10_000_000,
  maxJsonDepth: 64,
  maxJsonKeys: 20_000,
}

export const message = (text: string): string => JSON.stringify({ role: 'user', content: text })

/** An engine's answer. */
export const answer = (id: string, ...texts: readonly string[]): string =>
  JSON.stringify({
    id,
    object: 'response',
    status: 'completed',
    model: 'a-model',
    output: texts.map((text, index) => ({
      id: `msg_${id}_${index}`,
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    })),
    usage: { input_tokens: 1, output_tokens: 1 },
  })

/** Texts of a chain's items, in order. */
export const textsOf = (items: Chain['items']): readonly string[] =>
  items.map(({ json }) => {
    const { content } = JSON.parse(json)
    return typeof content === 'string' ? content : content[0].text
  })

/** Calls as a turn makes them, on a history of its own over the store. */
export const callsOn = (
  store: HistoryStore,
  { limits, secret = 'a secret', former }: { limits?: Partial<HistoryLimits>; secret?: string; former?: string } = {},
) => {
  const formerSecret = createFormerSecret(former)
  const parts = createResponseHistory({ store, secret, former: formerSecret, limits: { ...testLimits, ...limits } })
  const { history } = parts
  const turn = (after: FinishedTurn['after'], id: string, changes: Partial<FinishedTurn> = {}): FinishedTurn => ({
    tenant: alice,
    after,
    model: 'a-model',
    responseId: id,
    inputItems: [message(`question ${id}`)],
    response: answer(id, `answer ${id}`),
    ttlSeconds: 100,
    ...changes,
  })
  return {
    ...parts,
    addFormer: (tenant: TenantKey) => formerSecret?.add(tenant),
    /** A first turn. */
    begin: (id: string, changes: Partial<FinishedTurn> = {}) =>
      history.append(turn({ kind: 'first', root: history.newRoot() }, id, changes)),
    /** A turn that continues a response. */
    follow: (before: string, id: string, changes: Partial<FinishedTurn> = {}) =>
      history.append(turn({ kind: 'response', id: before }, id, changes)),
    /** A turn of a conversation, which it holds already. */
    converse: (conversationId: string, turnId: string, id: string, changes: Partial<FinishedTurn> = {}) =>
      history.append(turn({ kind: 'conversation', id: conversationId, turnId }, id, changes)),
    hold: (id: string, turnId: string) =>
      history.open({ tenant: alice, continued: { kind: 'conversation', id, turnId, lockMs: 10_000 } }),
    chain: async (id: string, tenant = alice): Promise<Chain> => {
      const outcome = await history.open({ tenant, continued: { kind: 'response', id } })
      if (outcome.kind !== 'found') throw new Error(`The chain is ${outcome.kind}`)
      return outcome.chain
    },
    /** Texts of the chain that a response ends, or `unknown`. */
    texts: async (id: string, tenant = alice): Promise<readonly string[] | string> => {
      const outcome = await history.open({ tenant, continued: { kind: 'response', id } })
      return outcome.kind === 'found' ? textsOf(outcome.chain.items) : outcome.kind
    },
    newConversation: async (changes: { items?: readonly string[]; metadata?: Record<string, string> } = {}) => {
      const created = await parts.conversations.create({
        tenant: alice,
        items: [],
        metadata: {},
        ttlSeconds: 100,
        ...changes,
      })
      expect(created.kind).toBe('created')
      return created.kind === 'created' ? created.conversation.id : ''
    },
  }
}
