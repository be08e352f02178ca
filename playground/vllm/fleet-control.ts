import { createServer, type ServerResponse } from 'node:http'
import type { FleetServer } from './fleet-server.ts'

/** Takes orders for the servers of a fleet from other processes of the same user. */
export interface FleetControl {
  close(): Promise<void>
}

const orders = ['pause', 'resume', 'kill', 'restart'] as const
type Order = (typeof orders)[number]

/**
 * HTTP on a Unix socket, in a folder that only its user may enter: `GET /` lists the servers with their process ids, and
 * `POST /<server>/<pause|resume|kill|restart>` is answered 204 when it is done; a restart is done when the server answers.
 */
export const serveFleetControl = async (options: {
  readonly socketPath: string
  readonly servers: readonly FleetServer[]
}): Promise<FleetControl> => {
  const ending = new AbortController()
  const server = createServer((request, response) => {
    request.resume()
    void answer({ ...options, method: request.method ?? '', path: request.url ?? '', signal: ending.signal }, response)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.socketPath, resolve)
  })
  return {
    close: () =>
      new Promise((resolve) => {
        ending.abort()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const answer = async (
  asked: {
    readonly method: string
    readonly path: string
    readonly servers: readonly FleetServer[]
    readonly signal: AbortSignal
  },
  response: ServerResponse,
): Promise<void> => {
  if (asked.method === 'GET' && asked.path === '/') return send(response, 200, asked.servers.map(stateOf))
  const [, name, orderText] = asked.path.split('/')
  const server = asked.servers.find((candidate) => candidate.name === name)
  const order = orders.find((candidate) => candidate === orderText)
  if (asked.method !== 'POST' || server === undefined || order === undefined) {
    return send(response, 404, { message: `There is no ${asked.method} ${asked.path}` })
  }
  try {
    await obey(server, order, asked.signal)
    send(response, 204)
  } catch (error) {
    send(response, 500, { message: error instanceof Error ? error.message : String(error) })
  }
}

const obey = async (server: FleetServer, order: Order, signal: AbortSignal): Promise<void> => {
  switch (order) {
    case 'pause':
      return server.child().pause()
    case 'resume':
      return server.child().resume()
    case 'kill':
      await server.child().kill()
      return
    case 'restart':
      return server.restart(signal)
  }
}

const stateOf = (server: FleetServer): unknown => ({
  name: server.name,
  url: server.url,
  pid: server.child().pid,
  running: server.child().isRunning(),
})

const send = (response: ServerResponse, status: number, body?: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}
