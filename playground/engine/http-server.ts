// llama-server's interface: which handler answers which path, and what all of them have in common.
import { createServer, type Server } from 'node:http'
import { engineMetrics, modelEntry, props, slotReports } from './engine-facts.ts'
import { EngineError, type Exchange, readObject, type Service, sendError, sendJson } from './exchange.ts'
import { handleInference, handleTokenCount } from './inference-handler.ts'
import { handleSlotAction } from './slots-handler.ts'

/** Creates the server; a request whose client leaves is aborted. */
export const createHttpServer = (service: Service): Server => {
  const server = createServer(async (request, response) => {
    const closing = new AbortController()
    response.once('close', () => {
      closing.abort()
      // After `server.close()`, a connection would otherwise stay open until its client closes it.
      if (!server.listening) server.closeIdleConnections()
    })
    const target = { response, isAnthropic: request.url?.startsWith('/v1/messages') === true }
    try {
      const url = new URL(request.url ?? '', 'http://engine')
      await route({ request, response, url, signal: closing.signal }, service)
    } catch (error) {
      if (closing.signal.aborted) return
      if (error instanceof EngineError) return sendError(target, error)
      service.log.error({ err: error }, 'a request failed')
      if (response.headersSent) response.destroy()
      else sendError(target, new EngineError(500, 'The engine failed.'))
    }
  })
  // Only proxies close idle connections. One that closes here just as a request arrives would fail that request.
  server.keepAliveTimeout = 0
  return server
}

/** llama-server asks for no key here. */
const publicPaths: readonly string[] = ['/', '/health', '/v1/models']

const route = async (exchange: Exchange, service: Service): Promise<void> => {
  const { request, response, url } = exchange
  const { engine, apiKey } = service
  const { authorization, 'x-api-key': bareKey } = request.headers
  const isRefused = apiKey !== undefined && authorization !== `Bearer ${apiKey}` && bareKey !== apiKey
  if (isRefused && !publicPaths.includes(url.pathname)) throw new EngineError(401, 'Invalid API Key')
  const [, slotId] = /^\/slots\/([^/]+)$/.exec(url.pathname) ?? []
  if (slotId !== undefined && request.method === 'POST') return handleSlotAction(slotId, exchange, service)
  const method = request.method === 'HEAD' ? 'GET' : request.method
  switch (`${method} ${url.pathname}`) {
    case 'POST /v1/completions':
      return handleInference('completions', exchange, service)
    case 'POST /v1/chat/completions':
      return handleInference('chat', exchange, service)
    case 'POST /v1/responses':
      if (!service.hasResponses) throw new EngineError(404, 'File Not Found')
      return handleInference('responses', exchange, service)
    case 'POST /v1/messages':
      return handleInference('messages', exchange, service)
    case 'POST /v1/messages/count_tokens':
      return handleTokenCount(exchange, service)
    case 'GET /v1/models': {
      const data = service.modelNames.map((name) => modelEntry(service, name))
      return sendJson(response, { object: 'list', data })
    }
    case 'POST /tokenize': {
      const { content } = await readObject(exchange)
      return sendJson(response, { tokens: engine.llama.tokenize(typeof content === 'string' ? content : '') })
    }
    case 'GET /':
    case 'GET /health':
      return sendJson(response, { status: 'ok' })
    case 'GET /props':
      return sendJson(response, props(service))
    case 'GET /slots':
      return sendJson(response, slotReports(engine))
    case 'GET /metrics':
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(engineMetrics(engine))
      return
    default:
      throw new EngineError(404, 'File Not Found')
  }
}
