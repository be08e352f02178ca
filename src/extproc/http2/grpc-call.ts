import type { RpcCall, RpcMethod, RpcReceiver, RpcStatus } from '../transport.ts'
import { type GrpcStatus, grpcCode, toGrpcStatus } from './grpc-status.ts'
import { MessageReader, type ReadFault } from './message-reader.ts'

/** The server's end of one HTTP/2 stream, as a call uses it. */
export interface PeerStream {
  /** Queues a message, behind the response headers. False: the peer is slow, and `drained` will be told. */
  write(message: Buffer): boolean
  /** Queues the end with its status. Nothing is sent afterwards. */
  finish(status: GrpcStatus): void
  /** Reads no further from the peer, or goes on to. */
  pause(): void
  resume(): void
}

/** What the server wants to know of its calls. */
export interface CallObserver {
  /** Once for each call, when it is over. */
  closed(): void
  /** The method threw. */
  fault(error: unknown): void
}

const failed: GrpcStatus = { code: grpcCode.internal, message: 'the server failed' }
const cutOff: GrpcStatus = { code: grpcCode.internal, message: 'the last message is cut off' }
const unreadable: GrpcStatus = { code: grpcCode.internal, message: 'a message cannot be read' }
const tooLargeToSend: GrpcStatus = { code: grpcCode['resource-exhausted'], message: 'an answer is too large' }

const readFaults: Readonly<Record<ReadFault, GrpcStatus>> = {
  compressed: { code: grpcCode.unimplemented, message: 'messages must not be compressed' },
  'too-large': { code: grpcCode['resource-exhausted'], message: 'a message is too large' },
}

/** One call: gRPC's framing between a stream of bytes and a method. Its stream tells it what comes, and when it is gone. */
export class GrpcCall implements RpcCall<unknown> {
  readonly #stream: PeerStream
  readonly #method: RpcMethod<unknown, unknown>
  readonly #observer: CallObserver
  readonly #maxMessageBytes: number
  readonly #reader: MessageReader
  #receiver: RpcReceiver<unknown> | undefined
  #state: 'open' | 'ended' | 'closed' = 'open'
  #paused = false
  #timer: NodeJS.Timeout | undefined

  constructor(
    stream: PeerStream,
    method: RpcMethod<unknown, unknown>,
    options: { readonly observer: CallObserver; readonly maxMessageBytes: number },
  ) {
    this.#stream = stream
    this.#method = method
    this.#observer = options.observer
    this.#maxMessageBytes = options.maxMessageBytes
    this.#reader = new MessageReader(options.maxMessageBytes, (message) => this.#take(message))
  }

  /** A stream that stays open between pieces of work. */
  get longLived(): boolean {
    return this.#method.longLived
  }

  /** Opens the method. Before it, nothing may be told. */
  open(timeoutMs: number | undefined): void {
    try {
      this.#receiver = this.#method.open(this)
    } catch (thrown) {
      this.#fail(thrown)
    }
    if (timeoutMs === undefined) return
    this.#timer = setTimeout(() => {
      this.#finish({ code: grpcCode['deadline-exceeded'], message: 'the deadline is over' })
    }, timeoutMs)
  }

  send(message: unknown): void {
    if (this.#state !== 'open') return
    const bytes = this.#encode(message)
    if (bytes === undefined || this.#stream.write(bytes) || this.#paused) return
    this.#paused = true
    this.#stream.pause()
  }

  end(status: RpcStatus): void {
    this.#finish(toGrpcStatus(status))
  }

  /** Bytes from the peer. */
  data(bytes: Buffer): void {
    if (this.#state !== 'open') return
    const fault = this.#reader.read(bytes)
    if (fault !== undefined) this.#finish(readFaults[fault])
  }

  /** The peer sends nothing more. */
  halfClosed(): void {
    if (this.#state !== 'open') return
    if (this.#reader.unfinished) {
      this.#finish(cutOff)
      return
    }
    try {
      this.#receiver?.halfClosed()
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  /** The peer has taken what was queued. */
  drained(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#stream.resume()
  }

  /** The stream is gone. */
  closed(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    clearTimeout(this.#timer)
    try {
      this.#receiver?.closed()
    } catch (thrown) {
      this.#observer.fault(thrown)
    }
    this.#observer.closed()
  }

  /** Returns whether more can be taken. */
  #take(bytes: Buffer): boolean {
    let message: unknown
    try {
      message = this.#method.decode(bytes)
    } catch {
      this.#finish(unreadable)
      return false
    }
    try {
      this.#receiver?.message(message)
    } catch (thrown) {
      this.#fail(thrown)
    }
    return this.#state === 'open'
  }

  #encode(message: unknown): Buffer | undefined {
    let bytes: Buffer
    try {
      bytes = this.#method.encode(message)
    } catch (thrown) {
      this.#fail(thrown)
      return undefined
    }
    if (bytes.length > this.#maxMessageBytes) {
      this.#finish(tooLargeToSend)
      return undefined
    }
    return bytes
  }

  #fail(thrown: unknown): void {
    this.#observer.fault(thrown)
    this.#finish(failed)
  }

  #finish(status: GrpcStatus): void {
    if (this.#state !== 'open') return
    this.#state = 'ended'
    this.#stream.finish(status)
  }
}
