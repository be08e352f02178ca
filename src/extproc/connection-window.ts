import { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import type { Server } from '@grpc/grpc-js'

/**
 * What Envoy may send on a connection before any of it is read; of each stream 64 KiB. HTTP/2 begins with 64 KiB for a
 * connection, too: one body, or one stream that is not read, then holds up all others, turns among them.
 */
const connectionWindowBytes = 16 * 1024 * 1024

/**
 * Widens the flow-control window of each connection that the server takes. grpc-js 1.14 has an option for clients
 * alone, and keeps its HTTP/2 servers, one for each injector, in a private field. Throws if it does not any more.
 */
export const widenConnections = (server: Server): void => {
  const http2Servers: unknown = Reflect.get(server, 'http2Servers')
  if (!(http2Servers instanceof Map)) throw new Error('@grpc/grpc-js has no http2Servers')
  for (const http2Server of http2Servers.keys()) {
    if (!(http2Server instanceof EventEmitter)) throw new Error('@grpc/grpc-js has other http2Servers')
    http2Server.on('session', (session: ServerHttp2Session) => session.setLocalWindowSize(connectionWindowBytes))
  }
}
