import { createServer } from 'node:http'
import type { FleetServer } from './fleet-server.ts'

const commands = ['pause', 'resume', 'kill', 'restart'] as const

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
  const server = createServer((request, response) => {
    const [, name, word] = (request.url ?? '').split('/')
    const found = servers.find((candidate) => candidate.name === name)
    const command = commands.find((candidate) => candidate === word)
    request.resume()
    if (request.method !== 'POST' || found === undefined || command === undefined) {
      response.writeHead(404).end()
      return
    }
    runAction(found, command, ending.signal).then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socketPath, resolve)
  })
  return () =>
    new Promise((resolve) => {
      ending.abort()
      server.close(() => resolve())
      server.closeAllConnections()
    })
}

const runAction = async (
  server: FleetServer,
  command: (typeof commands)[number],
  signal: AbortSignal,
): Promise<unknown> => {
  switch (command) {
    case 'pause':
      return server.child().pause()
    case 'resume':
      return server.child().resume()
    case 'kill':
      return server.child().kill()
    case 'restart':
      return server.restart(signal)
  }
}
