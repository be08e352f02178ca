import { type AccessLogHooks, createAccessLogMethod } from '../accesslog/access-log-method.ts'
import { createHealthMethods } from '../admin/grpc-health-methods.ts'
import type { HealthState } from '../admin/grpc-health-state.ts'
import type { ContextCacheManager } from '../context/context-cache-manager.ts'
import { createLeanCodec, leanAccessLogCodec, leanHealthCodecs } from './codec/lean-codec.ts'
import { createExtProcCodec } from './codec.ts'
import { createGrpcJsServer } from './grpc-js/grpc-js-server.ts'
import { createHttp2Server } from './http2/create-http2-server.ts'
import type { ProcessHooks } from './process-hooks.ts'
import { createProcessMethod, type ProcessOptions } from './process-stream.ts'
import type { CreateRpcServer, ListenAddress, RpcMethod } from './transport.ts'
import { createTurnsMethod } from './turns/turns-method.ts'

/** What a message may hold beyond a body: headers, metadata, framing. Envoy's own limit for headers is 60 KiB. */
const messageOverheadBytes = 64 * 1024

/** Envoy opens one stream per HTTP request, all of a worker's on one connection. */
const maxConcurrentStreams = 65_536

/**
 * `grpc-js`: @grpc/grpc-js and @grpc/proto-loader. `http2`: HTTP/2, gRPC's framing and the messages in use by this
 * package's own code, at a fraction of the cost. On the wire they are the same.
 */
export type ExtProcTransport = 'grpc-js' | 'http2'

export interface ExtProcServerOptions {
  readonly service: ContextCacheManager
  readonly listen: ListenAddress
  /** Request bodies above this are answered 413; Envoy's own limit for the route should be the same. */
  readonly maxBodyBytes: number
  /** Set to serving by the caller once everything else is up; set to not serving here when a drain begins. */
  readonly health: HealthState
  readonly hooks: ProcessHooks & AccessLogHooks
  /** What carries the messages; default `http2`. */
  readonly transport?: ExtProcTransport
  /** Monotonic clock, milliseconds; default `performance.now`. */
  readonly now?: () => number
}

/** The gateway's gRPC port: ext_proc, access log and health, side by side. */
export interface ExtProcServer {
  /** Listens. Rejects when the address cannot be had. Resolves with the address in use. */
  start(): Promise<ListenAddress>
  /** Tells health checks to stay away, lets open streams end for up to `deadlineMs`, then stops. */
  drain(deadlineMs: number): Promise<void>
  /** Cuts what is open. Idempotent. */
  stop(): Promise<void>
}

export const createExtProcServer = (options: ExtProcServerOptions): ExtProcServer => {
  const { hooks, health, maxBodyBytes } = options
  const { createServer, methods } = transports[options.transport ?? 'http2']
  const server = createServer({
    listen: options.listen,
    maxMessageBytes: maxBodyBytes + messageOverheadBytes,
    maxConcurrentStreams,
    onFault: (error) => hooks.fault(error),
    methods: methods(options),
  })
  return {
    start: () => server.start(),
    drain: (deadlineMs) => {
      health.setServing(false)
      return server.drain(deadlineMs)
    },
    stop: () => server.stop(),
  }
}

interface Transport {
  readonly createServer: CreateRpcServer
  readonly methods: (options: ExtProcServerOptions) => readonly RpcMethod<unknown, unknown>[]
}

const decisionMethods = (
  options: ExtProcServerOptions,
  { codec, endsFirst }: Pick<ProcessOptions, 'codec' | 'endsFirst'>,
): readonly RpcMethod<unknown, unknown>[] => {
  const parts = {
    service: options.service,
    hooks: options.hooks,
    now: options.now ?? (() => performance.now()),
  }
  return [
    createProcessMethod({ ...parts, codec, endsFirst, maxBodyBytes: options.maxBodyBytes }),
    createTurnsMethod({ ...parts, health: options.health }),
  ]
}

const transports: Readonly<Record<ExtProcTransport, Transport>> = {
  'grpc-js': {
    createServer: createGrpcJsServer,
    methods: (options) => [
      // Node's HTTP/2 server, which is beneath, takes streams that it ends before its peer does for an attack.
      ...decisionMethods(options, { codec: createExtProcCodec(), endsFirst: false }),
      createAccessLogMethod(options),
      ...createHealthMethods(options.health),
    ],
  },
  http2: {
    createServer: createHttp2Server,
    methods: (options) => [
      ...decisionMethods(options, { codec: createLeanCodec(), endsFirst: true }),
      createAccessLogMethod(options, leanAccessLogCodec),
      ...createHealthMethods(options.health, leanHealthCodecs),
    ],
  },
}
