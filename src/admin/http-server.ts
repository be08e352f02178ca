import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { untilAborted, withinLimit } from '../async/deadline.ts'
import { AdminError } from './admin-error.ts'
import { type AdminAnswer, type AdminSources, createAdminPages, json, text } from './admin-routes.ts'
import type { ApiAccess } from './api-access.ts'
import { type ApiAnswer, createApiRoutes } from './api-routes.ts'
import { readConsoleFiles } from './console-files.ts'
import { createLiveEvents } from './live-events.ts'
import type { OperatorsApi } from './operators-api.ts'

const maxHeaderBytes = 8 * 1024
/** Above this, the connection that has asked for nothing for the longest time is closed. */
const maxConnections = 512
/** From the connect, or the last answer, to the end of a request. */
const requestTimeoutMs = 5_000
const checkIntervalMs = 1_000
/** A client that takes nothing of its answer for so long is gone. */
const stalledMs = 10_000
const stopTimeoutMs = 1_000

/** The HTTP server for operators, on a port of its own: pages, and the API below /api. Nothing of it shows a secret. */
export const createAdminServer = (
  options: AdminSources & {
    readonly host: string
    readonly api: OperatorsApi
    readonly access: ApiAccess
    /** 0: any free port. */
    readonly port: number
    /** Time limit of a page, after which the answer is 503, milliseconds. Default: 2,000. */
    readonly pageTimeoutMs?: number
    /** Called when a page fails. */
    readonly onError: (error: unknown) => void
  },
) => {
  const pages = createAdminPages(options)
  const files = readConsoleFiles()
  const live = createLiveEvents(options)
  const routes = createApiRoutes({ ...options, live })
  const pageTimeoutMs = options.pageTimeoutMs ?? 2_000

  const failed = (error: unknown): AdminAnswer => {
    options.onError(error)
    return text('The page could not be made; the log says why.\n', 503)
  }

  const refused = (error: unknown): ApiAnswer => {
    if (!(error instanceof AdminError)) options.onError(error)
    const { status, code, message } = error instanceof AdminError ? error : new AdminError('internal_error')
    return { ...json({ error: { code, message } }), status }
  }

  const answerApi = (request: IncomingMessage, response: ServerResponse): Promise<ApiAnswer> =>
    withinLimit(pageTimeoutMs, (signal) =>
      untilAborted(routes(request, response).catch(refused), signal, () => refused(signal.reason)),
    )

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<ApiAnswer> => {
    if (request.url?.startsWith('/api/') === true) return answerApi(request, response)
    if (hasBody(request)) return text('These pages take no body.\n', 413)
    const [path = ''] = (request.url ?? '').split('?')
    const file = files(path, request.headers['if-none-match'])
    const page = file === undefined ? pages.get(path) : async () => file
    if (page === undefined) return text('No such page. / lists them.\n', 404)
    if (request.method !== 'GET' && request.method !== 'HEAD') return text('These pages are read only.\n', 405)
    return withinLimit(pageTimeoutMs, (signal) =>
      untilAborted(page().catch(failed), signal, () => failed(signal.reason)),
    )
  }

  /** The one that asked last is at the end. */
  const connections = new Set<Socket>()
  const server = createServer(
    {
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkIntervalMs,
    },
    (request, response) => {
      connections.delete(request.socket)
      connections.add(request.socket)
      void answer(request, response).then((page) => page && send(page, { request, response }))
    },
  )
  server.setTimeout(stalledMs)
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    const [idlest] = connections
    if (idlest === undefined || connections.size <= maxConnections) return
    connections.delete(idlest)
    idlest.destroy()
  })

  return {
    /** Resolves when it listens. @throws the error of `listen`, such as EADDRINUSE */
    start: async (): Promise<{ readonly host: string; readonly port: number }> => {
      server.listen(options.port, options.host)
      await once(server, 'listening')
      const { address, port } = server.address() as AddressInfo
      return { host: address, port }
    },
    /** Resolves when all connections are closed; those that remain after a second are cut. */
    stop: async (): Promise<void> => {
      live.close()
      const timer = setTimeout(() => server.closeAllConnections(), stopTimeoutMs)
      // The only error is that the server does not listen.
      await new Promise((resolve) => server.close(resolve))
      clearTimeout(timer)
    },
  }
}

const hasBody = (request: IncomingMessage): boolean =>
  request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) !== 0

const send = (
  page: AdminAnswer,
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse },
): void => {
  const { request, response } = exchange
  response.writeHead(page.status, {
    'content-type': page.contentType,
    // Of a file that has not changed, it would be that of the file.
    ...(page.status === 304 ? {} : { 'content-length': Buffer.byteLength(page.body) }),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...page.headers,
    ...(page.status === 405 ? { allow: 'GET, HEAD' } : {}),
    // The rest of an unread body must not be parsed as the next request.
    ...(hasBody(request) ? { connection: 'close' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : page.body)
}
