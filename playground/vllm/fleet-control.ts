import { once } from 'node:events'
import { createServer } from 'node:http'
import type { FleetServer } from './fleet-server.ts'

/**
 * Accepts commands for single servers from other processes of the same user: HTTP on a Unix socket, in a folder that only
 * its user may enter. `POST /<server>/<pause|resume|kill|restart>` is answered 204 when it is done; a restart is done when
 * the server answers. Resolves to what ends it.
 */
export const serveFleetControl = async (
  socketPath: string,
  servers: readonly FleetServer[],
): Promise<() => Promise<void>> => {
  const ending = new AbortController()
  const commands = new Map<string, (server: FleetServer) => unknown>([
    ['pause', (server) => server.child().pause()],
    ['resume', (server) => server.child().resume()],
    ['kill', (server) => server.child().kill()],
    ['restart', (server) => server.restart(ending.signal)],
  ])
  const control = createServer(async (request, response) => {
    const [, name, word = ''] = (request.url ?? '').split('/')
    const server = servers.find((candidate) => candidate.name === name)
    const command = commands.get(word)
    request.resume()
    if (request.method !== 'POST' || server === undefined || command === undefined) {
      response.writeHead(404).end()
      return
    }
    try {
      await command(server)
      response.writeHead(204).end()
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  control.listen(socketPath)
  await once(control, 'listening')
  return async () => {
    ending.abort()
    const closed = once(control, 'close')
    control.close()
    control.closeAllConnections()
    await closed
  }
}
