import { frameFlag, frameType, maxWindowBytes } from './frames.ts'
import type { GrpcCall, PeerStream } from './grpc-call.ts'
import type { GrpcStatus } from './grpc-status.ts'
import { prefixBytes } from './message-reader.ts'
import { frameShare, type Outbound, type WaitingStream } from './outbound.ts'
import { httpErrorBlock, responseBlock, trailersBlock } from './response-headers.ts'

/** How much a client may send on a stream before it is given room again. */
export const streamWindowBytes = 262_144

/** What stands behind the data that is queued. */
type Ending = { readonly kind: 'trailers'; readonly status: GrpcStatus } | { readonly kind: 'end-of-data' }

/** What a stream asks of its connection. */
export interface StreamHost {
  readonly outbound: Outbound
  /** Something was queued. */
  wake(): void
  /** Data of the client was dealt with, so that its connection may bring as much again. */
  credit(bytes: number): void
  /** The stream has said its last word; `half` when the client has not. */
  ended(stream: ServerStream, half: boolean): void
}

const nothing = Buffer.alloc(0)

/** One HTTP/2 stream: its windows, and what waits for them. */
export class ServerStream implements PeerStream, WaitingStream {
  readonly id: number
  readonly #host: StreamHost
  readonly #queue: Buffer[] = []
  #queueOffset = 0
  #ending: Ending | undefined
  #responded = false
  #over = false
  #halfClosed = false
  #sendWindow: number
  #receiveWindow = streamWindowBytes
  #paused = false
  #uncredited = 0
  /** What came while the client took no answers. Its connection gets no room for it until it does. */
  #held = 0
  #expectedBytes: number | undefined
  #call: GrpcCall | undefined
  #refusal: { readonly status: number; readonly text: string } | undefined

  constructor(
    id: number,
    host: StreamHost,
    options: { readonly sendWindow: number; readonly contentLength: number | undefined },
  ) {
    this.id = id
    this.#host = host
    this.#sendWindow = options.sendWindow
    this.#expectedBytes = options.contentLength
  }

  /** The call on this stream; none where the request was refused. */
  get call(): GrpcCall | undefined {
    return this.#call
  }

  attach(call: GrpcCall): void {
    this.#call = call
  }

  /** The client sends nothing more. */
  get halfClosed(): boolean {
    return this.#halfClosed
  }

  write(message: Buffer): boolean {
    if (this.#over) return true
    const { outbound } = this.#host
    this.#respond(responseBlock)
    const bytes = prefixBytes + message.length
    if (this.#queue.length === 0 && bytes <= frameShare(bytes, this.#sendWindow, outbound.window)) {
      outbound.message(this.id, message)
      this.#spend(bytes)
      this.#host.wake()
      return true
    }
    const prefix = Buffer.alloc(prefixBytes)
    prefix.writeUInt32BE(message.length, 1)
    this.#queue.push(Buffer.concat([prefix, message]))
    this.pump()
    return this.#queue.length === 0
  }

  finish(status: GrpcStatus): void {
    if (this.#over) return
    this.#ending = { kind: 'trailers', status }
    this.pump()
  }

  /** Answers what is no gRPC, once it has come whole: until then its sender may not be reading. */
  refuse(status: number, text: string): void {
    this.#refusal = { status, text }
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#release()
    this.#credit()
  }

  /** Data of the client, `bytes` with its padding. False when it is more than it may send. */
  received(data: Buffer, bytes: number): boolean {
    this.#receiveWindow -= bytes
    if (this.#receiveWindow < 0) return false
    this.#uncredited += bytes
    if (this.#expectedBytes !== undefined) this.#expectedBytes -= data.length
    this.#call?.data(data)
    this.#held += bytes
    if (!this.#paused || this.#over) this.#release()
    this.#credit()
    return true
  }

  /** The client has sent its last. False when it announced more, or less. */
  receivedEnd(): boolean {
    this.#halfClosed = true
    if (this.#expectedBytes !== undefined && this.#expectedBytes !== 0) return false
    this.#call?.halfClosed()
    if (this.#refusal !== undefined) this.#answer(this.#refusal)
    return true
  }

  /** The client takes more, or less. False when it claims to take more than there can be. */
  widen(bytes: number): boolean {
    this.#sendWindow += bytes
    if (this.#sendWindow > maxWindowBytes) return false
    this.pump()
    return true
  }

  /** Sends as much as the windows let through. */
  pump(): void {
    if (this.#over) return
    const { outbound } = this.#host
    this.#host.wake()
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      const share = frameShare(head.length - this.#queueOffset, this.#sendWindow, outbound.window)
      if (share <= 0) {
        if (outbound.window <= 0) outbound.wait(this)
        return
      }
      outbound.data(this.id, head.subarray(this.#queueOffset, this.#queueOffset + share))
      this.#spend(share)
      this.#queueOffset += share
      if (this.#queueOffset < head.length) continue
      this.#queue.shift()
      this.#queueOffset = 0
    }
    if (this.#ending === undefined) this.#call?.drained()
    else this.#end(this.#ending)
  }

  /** Nothing can be sent any more. */
  abandon(): void {
    this.#over = true
    this.#queue.length = 0
    this.#release()
    this.#host.outbound.forget(this)
  }

  #release(): void {
    this.#host.credit(this.#held)
    this.#held = 0
  }

  #respond(block: Buffer): void {
    if (this.#responded) return
    this.#responded = true
    this.#host.outbound.headers(this.id, block, false)
  }

  #answer({ status, text }: { readonly status: number; readonly text: string }): void {
    this.#respond(httpErrorBlock(status))
    this.#queue.push(Buffer.from(text))
    this.#ending = { kind: 'end-of-data' }
    this.pump()
  }

  #end(ending: Ending): void {
    const { outbound } = this.#host
    if (ending.kind === 'end-of-data') outbound.frame(frameType.data, frameFlag.endStream, this.id, nothing)
    else {
      const trailers = trailersBlock(ending.status)
      outbound.headers(this.id, this.#responded ? trailers : Buffer.concat([responseBlock, trailers]), true)
    }
    this.#host.ended(this, !this.#halfClosed)
  }

  #spend(bytes: number): void {
    this.#sendWindow -= bytes
    this.#host.outbound.spend(bytes)
  }

  /** Gives the client room for as much as was taken, in few and large steps. */
  #credit(): void {
    if (this.#paused || this.#over || this.#halfClosed || this.#uncredited < streamWindowBytes / 2) return
    this.#host.outbound.windowUpdate(this.id, this.#uncredited)
    this.#receiveWindow += this.#uncredited
    this.#uncredited = 0
    this.#host.wake()
  }
}
