import type { Socket } from 'node:net'
import { FrameWriter } from './frame-writer.ts'
import { defaultFrameBytes, defaultWindowBytes, frameFlag, frameType, maxWindowBytes } from './frames.ts'

/** A peer that leaves more than this unread is not read from until it has caught up. */
const maxUnreadBytes = 1_048_576

/** A stream with data that waits for room in a window. */
export interface WaitingStream {
  pump(): void
}

/** Everything that one connection sends: frames in order, and the connection's flow control over them. */
export class Outbound {
  readonly #socket: Socket
  readonly #frames = new FrameWriter()
  readonly #waiting = new Set<WaitingStream>()
  #window = defaultWindowBytes

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** How much data the peer takes now, on all streams together. */
  get window(): number {
    return this.#window
  }

  frame(type: number, flags: number, streamId: number, payload: Buffer): void {
    this.#frames.frame(type, flags, streamId, payload)
  }

  headers(streamId: number, block: Buffer, last: boolean): void {
    const flags = last ? frameFlag.endHeaders | frameFlag.endStream : frameFlag.endHeaders
    this.#frames.frame(frameType.headers, flags, streamId, block)
  }

  /** A whole gRPC message; the windows have been looked at. */
  message(streamId: number, message: Buffer): void {
    this.#frames.message(streamId, message)
  }

  /** The caller has looked at the windows. */
  data(streamId: number, payload: Buffer): void {
    this.#frames.frame(frameType.data, 0, streamId, payload)
  }

  reset(streamId: number, code: number): void {
    this.#frames.numbers(frameType.rstStream, streamId, code)
  }

  windowUpdate(streamId: number, bytes: number): void {
    this.#frames.numbers(frameType.windowUpdate, streamId, bytes)
  }

  goaway(lastStreamId: number, code: number): void {
    this.#frames.numbers(frameType.goaway, 0, lastStreamId, code)
  }

  /** Data was queued that counts against the connection's window. */
  spend(bytes: number): void {
    this.#window -= bytes
  }

  /** The peer takes more data. False when it claims to take more than there can be. */
  widen(bytes: number): boolean {
    this.#window += bytes
    if (this.#window > maxWindowBytes) return false
    for (const stream of this.#waiting) {
      if (this.#window <= 0) break
      this.#waiting.delete(stream)
      stream.pump()
    }
    return true
  }

  /** `pump` is called once the connection's window opens. */
  wait(stream: WaitingStream): void {
    this.#waiting.add(stream)
  }

  forget(stream: WaitingStream): void {
    this.#waiting.delete(stream)
  }

  /** Sends what is queued, in one write. */
  flush(): void {
    if (this.#frames.empty || !this.#socket.writable) return
    const pieces = this.#frames.take()
    if (pieces.length > 1) this.#socket.cork()
    for (const piece of pieces) this.#socket.write(piece)
    if (pieces.length > 1) this.#socket.uncork()
    if (this.#socket.writableLength > maxUnreadBytes) this.#socket.pause()
  }
}

/** How much of `bytes` may go into one frame now. */
export const frameShare = (bytes: number, streamWindow: number, connectionWindow: number): number =>
  Math.min(bytes, streamWindow, connectionWindow, defaultFrameBytes)
