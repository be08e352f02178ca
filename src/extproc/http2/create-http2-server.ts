import { createServer, type Server } from 'node:net'
import { within } from '../../async/deadline.ts'
import { removeStaleSocket } from '../stale-socket.ts'
import type { ListenAddress, RpcServer, RpcServerOptions, RpcStatus } from '../transport.ts'
import { Http2Connection, type KeepaliveTimes } from './connection.ts'
import type { GrpcCall } from './grpc-call.ts'

/** As grpc-js has them here. */
const usualKeepalive: KeepaliveTimes = { idleMs: 30_000, timeoutMs: 10_000 }

const shuttingDown: RpcStatus = { code: 'unavailable', message: 'the server is shutting down' }

export interface Http2ServerOptions extends RpcServerOptions {
  /** Default: 30 s of silence, 10 s for the answer. */
  readonly keepalive?: KeepaliveTimes
}

/**
 * The transport without a library: HTTP/2 and gRPC's framing on plain sockets, for the server's side and cleartext alone.
 * Streams that clients reset cost no more than others and never end a connection.
 */
export const createHttp2Server = (options: Http2ServerOptions): RpcServer => {
  const { keepalive = usualKeepalive } = options
  const connections = new Set<Http2Connection>()
  /** Told once no connection is left. */
  const waiting: (() => void)[] = []
  let draining = false
  let listener: Server | undefined
  let watch: NodeJS.Timeout | undefined

  const openCalls = (): readonly GrpcCall[] => [...connections].flatMap((connection) => connection.calls)

  const endAll = (calls: readonly GrpcCall[]): void => {
    for (const call of calls) call.end(shuttingDown)
  }

  /** Streams that never end by themselves would hold up a drain for ever. */
  const endLongLived = (): void => {
    if (!draining) return
    const calls = openCalls()
    if (calls.every(({ longLived }) => longLived)) endAll(calls)
  }

  const connectionOptions = {
    methods: new Map(options.methods.map((method) => [method.path, method])),
    maxConcurrentStreams: options.maxConcurrentStreams,
    maxMessageBytes: options.maxMessageBytes,
    observer: {
      closed: () => endLongLived(),
      fault: options.onFault,
    },
    closed: (connection: Http2Connection) => {
      connections.delete(connection)
      if (connections.size > 0) return
      for (const resolve of waiting.splice(0)) resolve()
    },
    now: () => performance.now(),
  }

  const empty = (): Promise<void> =>
    new Promise((resolve) => {
      if (connections.size === 0) resolve()
      else waiting.push(resolve)
    })

  const stop = async (): Promise<void> => {
    listener?.close()
    clearInterval(watch)
    endAll(openCalls())
    for (const connection of connections) connection.close()
    await empty()
  }

  return {
    start: async () => {
      await removeStaleSocket(options.listen)
      const server = createServer({ noDelay: true }, (socket) => {
        connections.add(new Http2Connection(socket, connectionOptions))
      })
      const address = await listen(server, options.listen)
      // A connection that cannot be accepted must not end the process.
      server.on('error', (error) => options.onFault(error))
      listener = server
      watch = setInterval(() => {
        for (const connection of connections) connection.checkAlive(keepalive)
      }, keepalive.timeoutMs / 2)
      watch.unref()
      return address
    },
    drain: async (deadlineMs) => {
      draining = true
      listener?.close()
      const ended = empty()
      for (const connection of connections) connection.drain()
      endLongLived()
      await within(deadlineMs, ended)
      await stop()
    },
    stop,
  }
}

const listen = (server: Server, address: ListenAddress): Promise<ListenAddress> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(
      'socketPath' in address ? { path: address.socketPath } : { host: address.host, port: address.port },
      () => {
        const bound = server.address()
        resolve(
          'socketPath' in address || bound === null || typeof bound === 'string'
            ? address
            : { host: address.host, port: bound.port },
        )
      },
    )
  })
