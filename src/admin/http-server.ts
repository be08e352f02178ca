import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { untilAborted, withinLimit } from '../async/deadline.ts'
import { type AdminAnswer, type AdminSources, createAdminPages, text } from './admin-routes.ts'

const maxHeaderBytes = 8 * 1024
/** Above this, the connection that has asked for nothing for the longest time is closed. */
const maxConnections = 512
/** From the connect, or the last answer, to the end of a request. */
const requestTimeoutMs = 5_000
const checkIntervalMs = 1_000
/** A client that takes nothing of its answer for so long is gone. */
const stalledMs = 10_000
const stopTimeoutMs = 1_000

/** The HTTP server for operators, on a port of its own. Read only, without secrets. */
export const createAdminServer = (
  options: AdminSources & {
    readonly host: string
    /** 0: any free port. */
    readonly port: number
    /** Time limit of a page, after which the answer is 503, milliseconds. Default: 2,000. */
    readonly pageTimeoutMs?: number
    /** Called when a page fails. */
    readonly onError: (error: unknown) => void
  },
) => {
  const pages = createAdminPages(options)
  const pageTimeoutMs = options.pageTimeoutMs ?? 2_000

  const failed = (error: unknown): AdminAnswer => {
    options.onError(error)
    return text('The page could not be made; the log says why.\n', 503)
  }

  const answer = async (request: IncomingMessage): Promise<AdminAnswer> => {
    if (hasBody(request)) return text('These pages take no body.\n', 413)
    const [path = ''] = (request.url ?? '').split('?')
    const page = pages.get(path)
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
      void answer(request).then((page) => send(page, { request, response }))
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
    'content-length': Buffer.byteLength(page.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(page.status === 405 ? { allow: 'GET, HEAD' } : {}),
    // The rest of an unread body must not be parsed as the next request.
    ...(hasBody(request) ? { connection: 'close' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : page.body)
}
