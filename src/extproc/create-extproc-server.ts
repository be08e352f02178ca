import { type AccessLogHooks, createAccessLogMethod } from '../accesslog/access-log-method.ts'
import { createHealthMethods } from '../admin/grpc-health-methods.ts'
import type { HealthState } from '../admin/grpc-health-state.ts'
import type { ContextService } from '../context/context-service.ts'
import { createExtProcCodec } from './codec.ts'
import { createGrpcJsServer } from './grpc-js/grpc-js-server.ts'
import type { ProcessHooks } from './process-hooks.ts'
import { createProcessMethod } from './process-stream.ts'
import type { CreateRpcServer, ListenAddress } from './transport.ts'

/** What a message may hold beyond a body: headers, metadata, framing. Envoy's own limit for headers is 60 KiB. */
const messageOverheadBytes = 64 * 1024

/** Envoy opens one stream per HTTP request, all of a worker's on one connection. */
const maxConcurrentStreams = 65_536

export interface ExtProcServerOptions {
  readonly service: ContextService
  readonly listen: ListenAddress
  /** Request bodies above this are answered 413; Envoy's own limit for the route should be the same. */
  readonly maxBodyBytes: number
  /** Set to serving by the caller once everything else is up; set to not serving here when a drain begins. */
  readonly health: HealthState
  readonly hooks: ProcessHooks & AccessLogHooks
  /** The transport; default @grpc/grpc-js. */
  readonly createServer?: CreateRpcServer
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
  const { service, hooks, health, maxBodyBytes } = options
  const server = (options.createServer ?? createGrpcJsServer)({
    listen: options.listen,
    maxMessageBytes: maxBodyBytes + messageOverheadBytes,
    maxConcurrentStreams,
    onFault: (error) => hooks.fault(error),
    methods: [
      createProcessMethod({
        service,
        codec: createExtProcCodec(),
        maxBodyBytes,
        hooks,
        now: options.now ?? (() => performance.now()),
      }),
      createAccessLogMethod({ service, hooks }),
      ...createHealthMethods(health),
    ],
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
