import { type ServerDuplexStream, status } from '@grpc/grpc-js'
import type { RpcCall, RpcMethod, RpcStatus } from '../transport.ts'

type Stream = ServerDuplexStream<unknown, unknown>

/** An open call, as the server that drains looks at it. */
export interface OpenCall {
  readonly longLived: boolean
  end(status: RpcStatus): void
}

/** What the server wants to know of a call. */
export interface CallObserver {
  /** Once, when the call is over. */
  closed(): void
  /** The method threw. */
  fault(error: unknown): void
}

const codes = {
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
  'invalid-argument': status.INVALID_ARGUMENT,
  'not-found': status.NOT_FOUND,
  unavailable: status.UNAVAILABLE,
} as const

/** Hands one of grpc-js's calls to its method. */
export const serveCall = (stream: Stream, method: RpcMethod<unknown, unknown>, observer: CallObserver): OpenCall => {
  let open = true

  const call: RpcCall<unknown> = {
    send: (message) => {
      if (open && !stream.writableEnded && !stream.write(message)) waitForPeer(stream)
    },
    end: (status) => {
      if (open && !stream.writableEnded) endStream(stream, status)
    },
  }

  /** An exception in a stream's listener would end the process. */
  const guarded = (tell: () => void): void => {
    if (!open) return
    try {
      tell()
    } catch (thrown) {
      observer.fault(thrown)
      call.end({ code: 'internal', message: 'the server failed' })
    }
  }

  const receiver = method.open(call)
  const close = (): void => {
    guarded(() => {
      open = false
      receiver.closed()
    })
    observer.closed()
  }

  stream.on('data', (message: unknown) => guarded(() => receiver.message(message)))
  stream.on('end', () => guarded(() => receiver.halfClosed()))
  stream.once('close', close)
  return { longLived: method.longLived, end: (status) => call.end(status) }
}

/** A peer that does not read its answers gets no more of its messages read. */
const waitForPeer = (stream: Stream): void => {
  if (stream.isPaused()) return
  stream.pause()
  stream.once('drain', () => stream.resume())
}

/** grpc-js takes the status of a stream from its 'error' event, and ends the stream by itself then. */
const endStream = (stream: Stream, end: RpcStatus): void => {
  if (end.code === 'ok') {
    stream.end()
    return
  }
  stream.emit('error', Object.assign(new Error(end.message), { code: codes[end.code], details: end.message }))
}
