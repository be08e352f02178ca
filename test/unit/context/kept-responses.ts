import type { Decision } from '../../../src/context/context-cache-manager.ts'
import { createTenants } from '../../../src/context/tenant.ts'
import { toErrorResponse } from '../../../src/openai/gateway-error.ts'
import { createResponseHistory } from '../../../src/responses/create-response-history.ts'
import { createMemoryHistoryStore } from '../../../src/responses/memory/create-memory-history-store.ts'
import { createContextGateway, type SentRequest } from '../../support/context-gateway.ts'
import { tenantSecret } from '../../support/decisions.ts'
import { gatewayRequest } from '../../support/gateway-request.ts'

export const tenant = createTenants({ secret: tenantSecret }).tenantOf(
  gatewayRequest({ path: '/', headers: { authorization: 'Bearer key-a' } }),
)

export const output = [
  { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: 'I think' }] },
  {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [
      { type: 'output_text', text: 'It rains.', annotations: [] },
      { type: 'refusal', refusal: 'No more.' },
    ],
  },
  { id: 'fc_1', type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}', status: 'completed' },
  { id: 'new_1', type: 'something_new', status: 'completed' },
]
/** The response as its engine answered. */
export const stored = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output,
  usage: { input_tokens: 3 },
}

const limits = {
  maxItemBytes: 100_000,
  maxConversationBytes: 300_000,
  maxTenantBytes: 1_000_000,
  maxJsonDepth: 64,
  maxJsonKeys: 1000,
}

/** What the client gets: status, and the body as a value or a text. */
export const seen = (decision: Decision): { readonly status: number; readonly body: unknown } => {
  switch (decision.kind) {
    case 'response':
      return { status: decision.status, body: decision.body }
    case 'cached-response': {
      const text = decision.body.toString()
      return { status: 200, body: decision.contentType === 'application/json' ? JSON.parse(text) : text }
    }
    case 'reject': {
      const { status, body } = toErrorResponse(decision.error)
      return { status, body }
    }
    default:
      throw new Error(`not answered: ${decision.kind}`)
  }
}

/** A gateway that keeps one response, `resp_1`, of `key-a`. */
export const openKept = async (changes: Partial<typeof limits> = {}) => {
  const parts = createResponseHistory({
    store: createMemoryHistoryStore({ maxBytes: 10_000_000 }),
    secret: tenantSecret,
    limits: { ...limits, ...changes },
  })
  const gateway = createContextGateway({ responses: parts })
  const send = async (method: string, path: string, request: Partial<SentRequest> = {}) =>
    seen(await gateway.send({ method, path, ...request }))
  const keep = (id: string, before?: string, changes: object = {}) =>
    parts.history.append({
      tenant,
      after: before === undefined ? { kind: 'first', root: parts.history.newRoot() } : { kind: 'response', id: before },
      model: 'm',
      responseId: id,
      inputItems: [JSON.stringify({ role: 'user', content: `about ${id}` })],
      response: JSON.stringify({ ...stored, id, ...changes }),
      ttlSeconds: 100,
    })
  await keep('resp_1')
  return { gateway, parts, send, keep }
}

export const error = (status: number, code: string, message: string, param: string | null = null) => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param, code } },
})
