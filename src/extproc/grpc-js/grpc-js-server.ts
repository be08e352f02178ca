import { type handleBidiStreamingCall, Server, ServerCredentials, type ServerOptions } from '@grpc/grpc-js'
import { within } from '../../async/deadline.ts'
import { removeStaleSocket } from '../stale-socket.ts'
import type { CreateRpcServer, ListenAddress, RpcMethod, RpcServerOptions, RpcStatus } from '../transport.ts'
import { toBindTarget } from './bind-target.ts'
import { type CallObserver, type OpenCall, serveCall } from './serve-call.ts'

const keepaliveTimeMs = 30_000
const keepaliveTimeoutMs = 10_000
/** A stop waits no longer than this for connections to close. */
const closeTimeoutMs = 1_000

/** The transport on @grpc/grpc-js. */
export const createGrpcJsServer: CreateRpcServer = (options) => {
  const server = new Server(toServerOptions(options))
  const calls = new Set<OpenCall>()
  let bound: string | undefined
  let closed: Promise<void> | undefined
  let onCallClosed = (): void => {}

  for (const method of options.methods) {
    register(server, method, calls, { closed: () => onCallClosed(), fault: options.onFault })
  }

  /** Connections are destroyed after `graceMs`. With channelz off, grpc-js does so in its drain only, and only if that comes first. */
  const close = (graceMs: number): Promise<void> => {
    if (closed === undefined) {
      if (bound !== undefined) server.drain(bound, graceMs)
      closed = new Promise((resolve) => server.tryShutdown(() => resolve()))
    }
    return closed
  }

  const stop = async (): Promise<void> => {
    const closing = close(0)
    for (const call of calls) call.end(shuttingDown)
    await within(closeTimeoutMs, closing)
    server.forceShutdown()
  }

  return {
    start: async () => {
      await removeStaleSocket(options.listen)
      const address = await bind(server, options.listen)
      bound = toBindTarget(address)
      return address
    },
    drain: async (deadlineMs) => {
      const closing = close(deadlineMs)
      onCallClosed = () => endLongLived(calls)
      endLongLived(calls)
      await within(deadlineMs, closing)
      await stop()
    },
    stop,
  }
}

const shuttingDown: RpcStatus = { code: 'unavailable', message: 'the server is shutting down' }

const toServerOptions = (options: RpcServerOptions): ServerOptions => ({
  'grpc.max_receive_message_length': options.maxMessageBytes,
  'grpc.max_send_message_length': options.maxMessageBytes,
  'grpc.max_concurrent_streams': options.maxConcurrentStreams,
  'grpc.keepalive_time_ms': keepaliveTimeMs,
  'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
  'grpc.enable_channelz': 0,
})

const register = (
  server: Server,
  method: RpcMethod<unknown, unknown>,
  calls: Set<OpenCall>,
  observer: CallObserver,
): void => {
  const handle: handleBidiStreamingCall<unknown, unknown> = (stream) => {
    const call = serveCall(stream, method, {
      fault: (error) => observer.fault(error),
      closed: () => {
        calls.delete(call)
        observer.closed()
      },
    })
    calls.add(call)
  }
  server.register(
    method.path,
    handle,
    (message) => method.encode(message),
    (bytes) => method.decode(bytes),
    'bidi',
  )
}

const bind = (server: Server, listen: ListenAddress): Promise<ListenAddress> =>
  new Promise((resolve, reject) => {
    server.bindAsync(toBindTarget(listen), ServerCredentials.createInsecure(), (error, port) => {
      if (error !== null) reject(error)
      else resolve('socketPath' in listen ? listen : { host: listen.host, port })
    })
  })

/** Streams that never end by themselves would hold up a drain for ever. */
const endLongLived = (calls: ReadonlySet<OpenCall>): void => {
  if ([...calls].some((call) => !call.longLived)) return
  for (const call of calls) call.end(shuttingDown)
}
