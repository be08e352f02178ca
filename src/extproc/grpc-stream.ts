import { setImmediate as nextTurn } from 'node:timers/promises'
import { type ServerDuplexStream, status } from '@grpc/grpc-js'

/** How a stream ends. Every code but `ok` is an error to the peer; `message` must not contain private data. */
export type StreamStatus =
  | { readonly code: 'ok' }
  | { readonly code: 'cancelled' | 'internal' | 'unavailable'; readonly message: string }

/** The server's side of an open gRPC stream. */
export interface GrpcStream<Out> {
  /** Queues a message. Reading pauses while the peer does not read. Ignored after the end. */
  send(message: Out): void
  /** Resolves in a later turn of the event loop, when the peer has read what was sent or the stream is over. */
  ready(): Promise<void>
  /** Sends what is queued, then the status. Ignored after the end. */
  end(status: StreamStatus): void
}

/** Callbacks of one open stream. None follows `closed`. They should not throw. */
export interface StreamHandler<In> {
  message(message: In): void
  /** The peer sends nothing more. It may still read. */
  halfClosed(): void
  /** The server stops: a stream that waits for its peer alone ends now. Default: it waits. */
  drain?(): void
  /** The stream is over: ended by either side, or its connection is broken. Called exactly once. */
  closed(): void
}

/** A bidirectional streaming method. */
export interface StreamMethod<In, Out> {
  /** `/package.Service/Method`. */
  readonly path: string
  /** Stays open between pieces of work: a drain ends such streams once all others are done. */
  readonly longLived: boolean
  /** Throws on bytes that are no message: the stream then ends with `internal`. */
  decode(bytes: Buffer): In
  /** Throws on a message that cannot be encoded: the stream then ends with `internal`. */
  encode(message: Out): Buffer
  open(stream: GrpcStream<Out>): StreamHandler<In>
}

const codes = {
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
  unavailable: status.UNAVAILABLE,
} as const

/** The server's hold on an open stream. */
export type ServedStream = ReturnType<typeof serveStream>

/** Connects a stream of grpc-js to its method. An exception in a callback ends the stream, not the process. */
export const serveStream = <In, Out>(
  duplex: ServerDuplexStream<In, Out>,
  method: StreamMethod<In, Out>,
  on: { readonly closed: () => void; readonly fault: (error: unknown) => void },
) => {
  let isOpen = true
  const untilRead = (): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        duplex.off('drain', done).off('close', done)
        resolve()
      }
      duplex.once('drain', done).once('close', done)
    })
  const stream: GrpcStream<Out> = {
    send: (message) => {
      if (!isOpen || duplex.writableEnded || duplex.write(message) || duplex.isPaused()) return
      duplex.pause()
      duplex.once('drain', () => duplex.resume())
    },
    ready: async () => {
      await nextTurn()
      if (isOpen && duplex.writableNeedDrain) await untilRead()
    },
    end: (end) => {
      if (!isOpen || duplex.writableEnded) return
      if (end.code === 'ok') duplex.end()
      // grpc-js takes a status other than OK from an 'error' event, and then ends the stream.
      else duplex.emit('error', Object.assign(new Error(end.message), { code: codes[end.code], details: end.message }))
    },
  }
  const handler = method.open(stream)
  const guarded = (call: () => void): void => {
    try {
      call()
    } catch (thrown) {
      on.fault(thrown)
      stream.end({ code: 'internal', message: 'the server failed' })
    }
  }
  duplex.on('data', (message: In) => {
    if (isOpen) guarded(() => handler.message(message))
  })
  duplex.on('end', () => {
    if (isOpen) guarded(() => handler.halfClosed())
  })
  duplex.once('close', () => {
    isOpen = false
    guarded(() => handler.closed())
    on.closed()
  })
  return {
    longLived: method.longLived,
    end: (end: StreamStatus): void => stream.end(end),
    /** Ends the stream if it waits for its peer alone. */
    drain: (): void => guarded(() => handler.drain?.()),
  }
}
