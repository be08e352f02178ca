import { GatewayError } from '../openai/gateway-error.ts'
import { itemsIn, metadataIn } from './conversation-body.ts'
import type { Conversation, Conversations, LimitReached } from './conversations.ts'
import type { HistoryRequest } from './history-request.ts'
import { listOf, pageOf } from './item-page.ts'
import { viewItem } from './item-view.ts'

/** `POST /v1/conversations` */
export const answerConversations = async (
  conversations: Conversations,
  { tenant, body, ttlSeconds }: HistoryRequest,
): Promise<object> => {
  const metadata = metadataIn(body) ?? {}
  const outcome = await conversations.create({ tenant, items: itemsIn(body, 'optional'), metadata, ttlSeconds })
  if (outcome.kind === 'limited') throw limitError(outcome)
  return viewOf(outcome.conversation)
}

/** `/v1/conversations/{id}` and below */
export const answerConversation = async (
  conversations: Conversations,
  request: HistoryRequest,
  id: string,
): Promise<object> => {
  const { path, tenant } = request
  const [, , part, itemId] = path
  if (itemId !== undefined) return answerItem(conversations, request, { id, itemId })
  if (part !== undefined) return answerItems(conversations, request, id)
  switch (request.method) {
    case 'DELETE': {
      const outcome = await conversations.remove({ tenant, id })
      if (outcome.kind === 'unknown') throw unknown(id)
      await request.forget(outcome)
      return { id, object: 'conversation.deleted', deleted: true }
    }
    case 'POST': {
      const metadata = metadataIn(request.body)
      if (metadata === undefined)
        throw new GatewayError('missing_required_parameter', { param: 'metadata', message: 'Give the new metadata.' })
      return viewFound(id, await conversations.setMetadata({ tenant, id, metadata }))
    }
    default:
      return viewFound(id, await conversations.get({ tenant, id }))
  }
}

const answerItems = async (
  conversations: Conversations,
  { method, tenant, query, body, ttlSeconds }: HistoryRequest,
  id: string,
): Promise<object> => {
  if (method === 'GET') {
    const items = await conversations.items({ tenant, id })
    if (items === undefined) throw unknown(id)
    return pageOf(items, query)
  }
  const outcome = await conversations.addItems({ tenant, id, items: itemsIn(body, 'required'), ttlSeconds })
  switch (outcome.kind) {
    case 'added':
      return listOf(outcome.items)
    case 'limited':
      throw limitError(outcome)
    case 'unknown':
      throw unknown(id)
    case 'locked':
      throw locked()
  }
}

const answerItem = async (
  conversations: Conversations,
  { method, tenant }: HistoryRequest,
  { id, itemId }: { readonly id: string; readonly itemId: string },
): Promise<object> => {
  if (method === 'GET') {
    const items = await conversations.items({ tenant, id })
    if (items === undefined) throw unknown(id)
    const item = items.find((candidate) => candidate.id === itemId)
    if (item === undefined) throw unknownItem(itemId)
    return viewItem(item)
  }
  const outcome = await conversations.removeItem({ tenant, id, itemId })
  switch (outcome.kind) {
    case 'removed':
      return viewOf(outcome.conversation)
    case 'unknown-item':
      throw unknownItem(itemId)
    case 'unknown':
      throw unknown(id)
    case 'locked':
      throw locked()
  }
}

const viewOf = ({ id, createdAt, metadata }: Conversation): object => ({
  id,
  object: 'conversation',
  created_at: createdAt,
  metadata,
})

const viewFound = (id: string, conversation: Conversation | undefined): object => {
  if (conversation === undefined) throw unknown(id)
  return viewOf(conversation)
}

const unknown = (id: string): GatewayError =>
  new GatewayError('conversation_not_found', { message: `Conversation with id '${id}' not found.` })

const unknownItem = (id: string): GatewayError =>
  new GatewayError('item_not_found', { message: `Item with id '${id}' not found in this conversation.` })

const locked = (): GatewayError => new GatewayError('conversation_locked', { param: 'conversation' })

const limitError = ({ limit }: LimitReached): GatewayError =>
  limit === 'tenant-bytes'
    ? // Room comes with time, or a deletion: not so soon that a client had better try again.
      new GatewayError('tenant_history_limit', { headers: { 'x-should-retry': 'false', 'retry-after': '60' } })
    : new GatewayError('conversation_too_large', { param: 'items' })
