import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { ListenAddress } from '../../../src/extproc/transport.ts'

/** A connection between client and server that a test can cut. */
export interface Cable {
  /** Where a client connects. */
  readonly address: ListenAddress
  /** Breaks what is connected, and takes no new connection. Idempotent. */
  cut(): void
}

export const createCable = async (to: ListenAddress): Promise<Cable> => {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => {})
  }
  const server = createServer((near) => {
    const far = 'socketPath' in to ? connect(to.socketPath) : connect(to.port, to.host)
    keep(near).pipe(keep(far)).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  return {
    address: { host: '127.0.0.1', port: bound.port },
    cut: () => {
      server.close()
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}
