/**
 * The seam between what the gateway says to Envoy and what carries it: an RPC server, without any type of the library
 * behind it. gRPC frames unary and streamed calls alike, so one kind of method, with any number of messages each way,
 * serves for all.
 */

/** Where a server listens. `port` 0 takes a free one. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socketPath: string }

/** How a call ends. Every code but `ok` is an error to the peer; `message` must hold nothing that is private. */
export type RpcStatus =
  | { readonly code: 'ok' }
  | {
      readonly code: 'cancelled' | 'internal' | 'invalid-argument' | 'not-found' | 'unavailable'
      readonly message: string
    }

/** The server's end of one open call. */
export interface RpcCall<Out> {
  /** Queues a message. The transport reads no further from a peer that does not take its answers. Ignored once the call is over. */
  send(message: Out): void
  /** Sends what is queued, then the status. Ignored once the call is over. */
  end(status: RpcStatus): void
}

/** What the transport tells of one open call; nothing after `closed`. These should not throw: see `onFault`. */
export interface RpcReceiver<In> {
  message(message: In): void
  /** The peer sends nothing more. It may still wait for answers, or have lost interest. */
  halfClosed(): void
  /** The call is over, by `end`, by the peer or by a broken connection: nothing can be sent any more. Comes exactly once. */
  closed(): void
}

/** One method of a service. */
export interface RpcMethod<In, Out> {
  /** As HTTP/2 has it: `/package.Service/Method`. */
  readonly path: string
  /** A stream that stays open between pieces of work, so that a drain need not wait for it. */
  readonly longLived: boolean
  /** Bytes to a message. May throw: the call then ends with `internal`, and the server lives on. */
  decode(bytes: Buffer): In
  /** A message to bytes. May throw: the call then ends with `internal`. */
  encode(message: Out): Buffer
  /** A peer opened a call. */
  open(call: RpcCall<Out>): RpcReceiver<In>
}

/** Bounds and address of a server. */
export interface RpcServerOptions {
  readonly listen: ListenAddress
  /** Methods of different messages stand side by side: each keeps its own pair together. */
  readonly methods: readonly RpcMethod<unknown, unknown>[]
  /** A message larger than this is refused (`RESOURCE_EXHAUSTED`), in both directions. */
  readonly maxMessageBytes: number
  /** Calls open at once on one connection. */
  readonly maxConcurrentStreams: number
  /** A method threw. Its call was ended with `internal`, and the server lives on. */
  readonly onFault: (error: unknown) => void
}

/** A running or stopped RPC server. */
export interface RpcServer {
  /** Listens. Rejects when the address cannot be had. Resolves with the address in use. */
  start(): Promise<ListenAddress>
  /**
   * Takes no new connection or call, waits for the open ones, then closes. Long-lived calls are ended with `unavailable`
   * once all others are done. Resolves after `deadlineMs` at the latest, with `stop` done if calls were left.
   */
  drain(deadlineMs: number): Promise<void>
  /** Cuts every call and closes. Idempotent. */
  stop(): Promise<void>
}

/** Makes a server; the name of the seam that another transport fills. */
export type CreateRpcServer = (options: RpcServerOptions) => RpcServer
