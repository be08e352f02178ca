// Which handler answers which address.
import { invalidRequest, serverError } from '../openai/openai-error.ts'
import type { Exchange } from './exchange.ts'
import { handleInference } from './inference-handler.ts'
import { handleModel, handleModelList, handleTokenize } from './model-handlers.ts'
import type { Service } from './service.ts'
import { handleSlotAction, handleSlotList } from './slots-handler.ts'

interface Route {
  readonly method: 'GET' | 'POST'
  /** Its one group, if any, is given to the handler. */
  readonly pattern: RegExp
  readonly handle: (exchange: Exchange, service: Service, part: string) => void | Promise<void>
}

const routes: readonly Route[] = [
  {
    method: 'POST',
    pattern: /^\/v1\/completions$/,
    handle: (exchange, service) => handleInference('completions', exchange, service),
  },
  {
    method: 'POST',
    pattern: /^\/v1\/chat\/completions$/,
    handle: (exchange, service) => handleInference('chat', exchange, service),
  },
  {
    method: 'POST',
    pattern: /^\/v1\/responses$/,
    handle: (exchange, service) => handleInference('responses', exchange, service),
  },
  { method: 'GET', pattern: /^\/v1\/models$/, handle: handleModelList },
  {
    method: 'GET',
    pattern: /^\/v1\/models\/(.+)$/,
    handle: (exchange, service, name) => handleModel(name, exchange, service),
  },
  { method: 'POST', pattern: /^\/tokenize$/, handle: handleTokenize },
  { method: 'GET', pattern: /^\/slots$/, handle: handleSlotList },
  {
    method: 'POST',
    pattern: /^\/slots\/([^/]+)$/,
    handle: (exchange, service, id) => handleSlotAction(id, exchange, service),
  },
  {
    method: 'GET',
    pattern: /^\/metrics$/,
    handle: async (exchange, { metrics }) => exchange.sendText(200, metrics.contentType, await metrics.text()),
  },
]

/** Answers the exchange. `service` is undefined while the model is being loaded. */
export async function route(exchange: Exchange, service: Service | undefined): Promise<void> {
  if (exchange.path === '/health' && exchange.method === 'GET') {
    if (service === undefined) return sendLoading(exchange)
    return exchange.sendJson(200, { status: 'ok' })
  }
  const matching = routes.filter(({ pattern }) => pattern.test(exchange.path))
  if (matching.length === 0) {
    const message = `Unknown request URL: ${exchange.method} ${exchange.path}.`
    return exchange.sendError(invalidRequest(message, { status: 404, code: 'unknown_url' }))
  }
  const found = matching.find(({ method }) => method === exchange.method)
  if (found === undefined) {
    const { error } = invalidRequest(`Not allowed to ${exchange.method} on ${exchange.path}.`, {
      code: 'method_not_allowed',
    })
    return exchange.sendJson(405, { error }, { allow: matching.map(({ method }) => method).join(', ') })
  }
  if (service === undefined) return sendLoading(exchange)
  await found.handle(exchange, service, found.pattern.exec(exchange.path)?.[1] ?? '')
}

function sendLoading(exchange: Exchange): void {
  exchange.sendError(serverError('Loading model', { status: 503, code: 'loading_model' }))
}
