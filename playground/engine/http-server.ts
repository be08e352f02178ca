// llama-server's interface: which handler answers which address, and what all of them have in common.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Logger } from 'pino'
import { engineMetrics, modelEntry, props } from './engine-facts.ts'
import {
  type Exchange,
  invalidRequest,
  RequestError,
  readObject,
  type Service,
  sendJson,
  serverError,
} from './exchange.ts'
import { handleInference } from './inference-handler.ts'
import { handleSlotAction, slotReports } from './slots-handler.ts'

export interface HttpServer {
  /** Begins to listen; until `serve` is called, everything is answered 503. Resolves to the port. */
  listen(address: { readonly host: string; readonly port: number }): Promise<number>
  serve(service: Service): void
  /** Stops listening and waits for the requests in progress, which are cut once `signal` aborts. */
  close(signal: AbortSignal): Promise<void>
}

export const createHttpServer = (log: Logger): HttpServer => {
  const inProgress = new Map<AbortController, Promise<void>>()
  let service: Service | undefined

  const server = createServer((request, response) => {
    const ending = new AbortController()
    response.once('close', () => {
      if (!response.writableFinished) ending.abort()
    })
    const base = 'http://engine'
    const url = URL.canParse(request.url ?? '', base) ? new URL(request.url ?? '', base) : new URL(`${base}/invalid`)
    const exchange: Exchange = { request, response, url, signal: ending.signal }
    const handled = route(exchange, service)
      .catch((error: unknown) => {
        if (exchange.signal.aborted && response.destroyed) return
        if (!(error instanceof RequestError)) log.error({ err: error, path: url.pathname }, 'a request failed')
        if (response.headersSent) return void response.destroy()
        const failure = serverError('The engine failed.', { status: 500, code: 'internal_error' })
        const { status, body } = error instanceof RequestError ? error : failure
        sendJson(response, status, { error: body })
      })
      .finally(() => inProgress.delete(ending))
    inProgress.set(ending, handled)
  })
  // Only proxies close idle connections. One that closes here just as a request arrives would fail that request.
  server.keepAliveTimeout = 0

  return {
    listen: async ({ host, port }) => {
      await once(server.listen(port, host), 'listening')
      const address = server.address()
      return typeof address === 'object' && address !== null ? address.port : port
    },
    serve: (ready) => {
      service = ready
    },
    close: async (signal) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const cut = () => {
        for (const ending of inProgress.keys()) ending.abort()
      }
      signal.addEventListener('abort', cut, { once: true })
      // A request may still arrive on a connection that was busy when the listening ended.
      while (inProgress.size > 0) {
        if (signal.aborted) cut()
        await Promise.all(inProgress.values())
      }
      server.closeAllConnections()
      await closed
    },
  }
}

const route = async (exchange: Exchange, service: Service | undefined): Promise<void> => {
  const { request, response, url } = exchange
  if (service === undefined) throw serverError('Loading model', { code: 'loading_model' })
  const { engine } = service
  const [, slotId] = /^\/slots\/([^/]+)$/.exec(url.pathname) ?? []
  if (slotId !== undefined && request.method === 'POST') return handleSlotAction(slotId, exchange, service)
  switch (`${request.method} ${url.pathname}`) {
    case 'POST /v1/completions':
      return handleInference('completions', exchange, service)
    case 'POST /v1/chat/completions':
      return handleInference('chat', exchange, service)
    case 'POST /v1/responses':
      return handleInference('responses', exchange, service)
    case 'GET /v1/models': {
      const data = service.modelNames.map((name) => modelEntry(service, name))
      return sendJson(response, 200, { object: 'list', data })
    }
    case 'POST /tokenize': {
      const { content } = await readObject(exchange)
      const text = typeof content === 'string' ? content : ''
      return sendJson(response, 200, { tokens: engine.llama.tokenize(text) })
    }
    case 'GET /health':
      return sendJson(response, 200, { status: 'ok' })
    case 'GET /props':
      return sendJson(response, 200, props(service))
    case 'GET /slots':
      return sendJson(response, 200, slotReports(engine))
    case 'GET /metrics':
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(engineMetrics(engine))
      return
    default:
      throw invalidRequest('File Not Found', { status: 404, code: 'unknown_url' })
  }
}
