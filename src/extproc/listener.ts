import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TlsOptions, Server as TlsServer } from 'node:tls'
import type { ConnectionInjector } from '@grpc/grpc-js'

/** Where a server listens. `port` 0 takes a free one. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socketPath: string }

/**
 * How connections of a client that is gone are found. Not by HTTP/2 PING: Node.js sends none on a session that drains,
 * and grpc-js 1.14 takes that for a dead client and cuts all streams.
 */
const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 }

export type Listener = ReturnType<typeof createListener>

/**
 * Listens in the place of grpc-js, and gives it each connection as `accept` returns it. TLS ends here, so that `accept`
 * sees what it protects; `tls` undefined: connections are not encrypted.
 */
export const createListener = (
  injector: Pick<ConnectionInjector, 'injectConnection' | 'drain'>,
  tls: TlsOptions | undefined,
  accept: (socket: Socket) => Duplex = (socket) => socket,
) => {
  const inject = (socket: Socket): void => injector.injectConnection(accept(socket))
  const listener =
    tls === undefined
      ? createServer(keepAlive, inject)
      : createTlsServer({ ...keepAlive, ...tls, ALPNProtocols: ['h2'] }, inject)
  return {
    /** Resolves with the address in use. Rejects when it cannot be used. */
    listen: async (at: ListenAddress): Promise<ListenAddress> => {
      await once(listener.listen('host' in at ? at : { path: at.socketPath }), 'listening')
      const address = listener.address()
      return 'host' in at && typeof address === 'object' && address !== null ? { ...at, port: address.port } : at
    },
    /** New connections get other certificates. */
    setTls: (changed: TlsOptions): void => {
      if (listener instanceof TlsServer) listener.setSecureContext(changed)
    },
    /** Takes no new connection, and gives open ones `graceMs` to end. Resolves when they have. */
    drain: (graceMs: number): Promise<void> => {
      const ended = new Promise<void>((resolve) => void listener.close(() => resolve()))
      injector.drain(graceMs)
      return ended
    },
  }
}
