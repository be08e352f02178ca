import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls'
import type { ConnectionInjector } from '@grpc/grpc-js'
import { createSilentConnections } from './silent-connections.ts'

/** Where a server listens. `port` 0 takes a free one. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socketPath: string }

/**
 * How connections of a client that is gone are found. Not by HTTP/2 PING: Node.js sends none on a session that drains,
 * and grpc-js 1.14 takes that for a dead client and cuts all streams.
 */
const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 }

/** No client that is there takes longer to say its first word, or to shake hands. */
const greetingMs = 10_000
const maxSilent = 1_024

/** A TLS handshake that failed, of a peer that had sent something: a probe that only connects is none. */
export interface RefusedPeer {
  /** `certificate`: the client has none, or none that `clientCa` signed. */
  readonly reason: 'certificate' | 'handshake'
  /** A code of OpenSSL or Node.js, such as `UNABLE_TO_VERIFY_LEAF_SIGNATURE`. */
  readonly cause: string
}

/** Listens in the place of grpc-js. */
export interface Listener {
  /** Resolves with the address in use. Rejects when it cannot be used. */
  listen(at: ListenAddress): Promise<ListenAddress>
  /** New connections get other certificates. */
  setTls(changed: TlsOptions): void
  /** Takes no new connection, and gives open ones `graceMs` to end. Resolves when they have. */
  drain(graceMs: number): Promise<void>
}

/** Gives grpc-js each connection once its client has said something. `tls` undefined: connections are not encrypted. */
export const createListener = (
  injector: Pick<ConnectionInjector, 'injectConnection' | 'drain'>,
  tls: TlsOptions | undefined,
  onRefused: (peer: RefusedPeer) => void = () => {},
): Listener => {
  const silent = createSilentConnections({ limitMs: greetingMs, maxSilent })
  const inject = (socket: Socket): void => injector.injectConnection(socket)
  /** It does not listen itself: a TLS session of a silent connection would be memory that anybody can take. */
  const tlsServer =
    tls === undefined
      ? undefined
      : createTlsServer({ ...tls, ALPNProtocols: ['h2'], handshakeTimeout: greetingMs }, (socket) =>
          silent.hold(socket, inject),
        )
  tlsServer?.on('tlsClientError', (error, socket) => onRefused(refusalOf(error, socket)))
  const listener = createServer(keepAlive, (socket) =>
    silent.hold(socket, (speaking) => {
      if (tlsServer === undefined) inject(speaking)
      else tlsServer.emit('connection', speaking)
    }),
  )
  return {
    listen: async (at) => {
      await once(listener.listen('host' in at ? at : { path: at.socketPath }), 'listening')
      const address = listener.address()
      return 'host' in at && typeof address === 'object' && address !== null ? { ...at, port: address.port } : at
    },
    setTls: (changed) => {
      tlsServer?.setSecureContext(changed)
    },
    drain: (graceMs) => {
      const ended = new Promise<void>((resolve) => void listener.close(() => resolve()))
      silent.closeAll()
      injector.drain(graceMs)
      return ended
    },
  }
}

const refusalOf = (error: NodeJS.ErrnoException, socket: TLSSocket): RefusedPeer => {
  // A code, whatever its declared type; null unless the certificate was refused.
  const refused: unknown = socket.authorizationError
  if (typeof refused === 'string') return { reason: 'certificate', cause: refused }
  const cause = error.code ?? error.message
  return { reason: cause === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE' ? 'certificate' : 'handshake', cause }
}
