import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { type handleBidiStreamingCall, type handleUnaryCall, Server, ServerCredentials, status } from '@grpc/grpc-js'
import { type AccessLogHooks, createAccessLog } from '../accesslog/access-log.ts'
import { within } from '../async/deadline.ts'
import type { ContextCacheManager } from '../context/context-cache-manager.ts'
import { envoyBodyBytes } from '../options/envoy-body-bytes.ts'
import { createExtProcCodec, maxBesideBodyBytes } from './codec.ts'
import { widenConnections } from './connection-window.ts'
import { type ServedStream, type StreamMethod, type StreamStatus, serveStream } from './grpc-stream.ts'
import { createHealthCheck, createHealthWatch, type HealthState } from './health.ts'
import { createListener, type ListenAddress, type Listener, type RefusedPeer } from './listener.ts'
import { createProcessMethod } from './process-method.ts'
import type { ProcessHooks } from './process-stream.ts'
import { forgetReceived } from './received-messages.ts'
import { createSelfSigned } from './self-signed.ts'
import { followTlsFiles, readTlsFiles, type TlsFiles } from './tls-files.ts'

export interface ExtProcServerOptions {
  readonly service: ContextCacheManager
  readonly listen: ListenAddress
  /** Undefined: the port is not encrypted. */
  readonly tls?: TlsFiles | 'self-signed' | undefined
  /** Longer request bodies are answered 413. Envoy's limit for the route must not be lower. */
  readonly maxBodyBytes: number
  /** The caller sets it to serving once everything else runs; a drain sets it to not serving. */
  readonly health: HealthState
  readonly hooks: ProcessHooks &
    AccessLogHooks & {
      /** TLS refused a connection. Must not throw. */
      readonly peerRefused: (peer: RefusedPeer) => void
    }
}

/** Most memory for the bodies of requests, unless two of the largest take more. */
const maxHeldBodyBytes = 128 * 1024 * 1024
/** Envoy opens a stream for each HTTP request, all of a worker's on one connection. */
const maxConcurrentStreams = 65_536
/**
 * Envoy resets the streams of clients that leave, and many may leave at once. By default Node.js takes 1,000 resets, then
 * 33 a second, and above that closes the connection with every turn on it. A flood still ends within seconds.
 */
const resetLimits = { streamResetBurst: maxConcurrentStreams / 4, streamResetRate: maxConcurrentStreams / 16 }
/** A stop waits no longer than this for connections to close. */
const closeTimeoutMs = 1_000

const shuttingDown: StreamStatus = { code: 'unavailable', message: 'the server is shutting down' }

/** The gateway's gRPC port: ext_proc, access log and health. */
export const createExtProcServer = (options: ExtProcServerOptions) => {
  const { health, hooks, listen, maxBodyBytes, service } = options
  const server = new Server({
    // A body above `maxBodyBytes` has to arrive to be answered 413.
    'grpc.max_receive_message_length': Math.max(maxBodyBytes, envoyBodyBytes) + maxBesideBodyBytes,
    'grpc.max_send_message_length': maxBodyBytes + maxBesideBodyBytes,
    'grpc.max_concurrent_streams': maxConcurrentStreams,
    'grpc.enable_channelz': 0,
  })
  // What grpc-js gives to `http2.createServer`; it has no option of its own for these.
  Object.assign(Object(Reflect.get(server, 'commonServerOptions')), resetLimits)
  const streams = new Set<ServedStream>()
  let stopFollowing: (() => void) | undefined
  let listener: Listener | undefined
  let closed: Promise<void> | undefined
  let isDraining = false

  /** Long-lived streams would hold up a drain for ever. */
  const endLongLived = (): void => {
    if (!isDraining || [...streams].some((stream) => !stream.longLived)) return
    for (const stream of streams) stream.end(shuttingDown)
  }

  const register = <In, Out>(
    { path, encode, decode }: Omit<UnaryMethod<In, Out>, 'answer'>,
    handle: handleUnaryCall<In, Out> | handleBidiStreamingCall<In, Out>,
    type: 'unary' | 'bidi',
  ): void => void server.register(path, handle, encode, decode, type)

  const addStreams = <In, Out>(method: StreamMethod<In, Out>): void => {
    const handle: handleBidiStreamingCall<In, Out> = (duplex) => {
      forgetReceived(duplex)
      const stream: ServedStream = serveStream(duplex, method, {
        fault: (error) => hooks.fault(error),
        closed: () => {
          streams.delete(stream)
          endLongLived()
        },
      })
      streams.add(stream)
    }
    register(method, handle, 'bidi')
  }

  const addCalls = <In, Out>(method: UnaryMethod<In, Out>): void => {
    const handle: handleUnaryCall<In, Out> = ({ request }, respond) => {
      const answer = method.answer(request)
      if (answer === undefined) respond({ code: status.NOT_FOUND, details: 'unknown service' })
      else respond(null, answer)
    }
    register(method, handle, 'unary')
  }

  const now = () => performance.now()
  const bodyMemory = { maxBytes: Math.max(maxHeldBodyBytes, 2 * maxBodyBytes), heldBytes: 0 }
  addStreams(createProcessMethod({ service, codec: createExtProcCodec(), maxBodyBytes, bodyMemory, hooks, now }))
  addStreams(createHealthWatch(health))
  addCalls(createHealthCheck(health))
  addCalls(createAccessLog({ service, hooks }))

  /** grpc-js destroys connections after `graceMs` only if this comes before its shutdown, which does not wait. */
  const close = (graceMs: number): Promise<void> => {
    if (closed === undefined) {
      const given = listener?.drain(graceMs)
      closed = new Promise<void>((resolve) => server.tryShutdown(() => resolve())).then(() => given)
    }
    return closed
  }

  /** Ends every stream and closes. Idempotent. */
  const stop = async (): Promise<void> => {
    stopFollowing?.()
    const closing = close(0)
    for (const stream of streams) stream.end(shuttingDown)
    await within(closeTimeoutMs, closing)
    server.forceShutdown()
  }

  return {
    /** Listens. Rejects when the address or the TLS files cannot be used. Resolves with the address in use. */
    start: async (): Promise<ListenAddress> => {
      if ('socketPath' in listen) await removeStaleSocket(listen.socketPath)
      const { tls } = options
      const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
      widenConnections(server)
      const files = tls === 'self-signed' ? undefined : tls
      const known = files === undefined ? undefined : await readTlsFiles(files)
      const tlsOptions = tls === 'self-signed' ? createSelfSigned() : known
      const opened = createListener(injector, tlsOptions, (peer) => hooks.peerRefused(peer))
      listener = opened
      if (files !== undefined && known !== undefined)
        stopFollowing = followTlsFiles(files, known, {
          apply: (changed) => opened.setTls(changed),
          onFault: (error) => hooks.fault(error),
        })
      return opened.listen(listen)
    },
    /**
     * Sets health to not serving, takes no new connection or stream, waits for open streams, then closes. Long-lived
     * streams are ended once all others are done. Resolves after `deadlineMs` at the latest.
     */
    drain: async (deadlineMs: number): Promise<void> => {
      health.setServing(false)
      const closing = close(deadlineMs)
      isDraining = true
      for (const stream of streams) stream.drain()
      endLongLived()
      await within(deadlineMs, closing)
      await stop()
    },
    stop,
  }
}

/** A method with one request and one response; undefined: the service that the request names is unknown. */
interface UnaryMethod<In, Out> {
  readonly path: string
  decode(bytes: Buffer): In
  encode(message: Out): Buffer
  /** Must not throw. */
  answer(request: In): Out | undefined
}

/** Removes the socket that a killed process left. One that is in use stays, and binding to it fails. */
export const removeStaleSocket = async (socketPath: string): Promise<void> => {
  const found = await lstat(socketPath).catch(() => undefined)
  if (found?.isSocket() !== true || (await isInUse(socketPath))) return
  await unlink(socketPath)
}

const isInUse = (socketPath: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
