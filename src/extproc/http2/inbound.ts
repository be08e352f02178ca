import type { RpcMethod } from '../transport.ts'
import { BlockReader } from './block-reader.ts'
import { defaultWindowBytes, errorCode, frameFlag, frameType, maxStreamId, maxWindowBytes } from './frames.ts'
import { type CallObserver, GrpcCall } from './grpc-call.ts'
import { admit } from './grpc-request.ts'
import { type GrpcStatus, grpcCode } from './grpc-status.ts'
import { HeaderBlock } from './header-block.ts'
import type { Outbound } from './outbound.ts'
import type { RequestHeaders } from './request-headers.ts'
import { ServerStream, type StreamHost } from './server-stream.ts'
import { StreamTable } from './stream-table.ts'

/** How much all streams of a connection may send together before they are given room again: what slow clients can occupy. */
export const connectionWindowBytes = 16_777_216

/** Room is given back in steps of this size. */
const creditStepBytes = 1_048_576

/** Names and values of one request's headers, and 32 bytes for each. */
export const maxHeaderListBytes = 65_536

const headersTooLarge: GrpcStatus = { code: grpcCode['resource-exhausted'], message: 'the headers are too large' }

/** What calls on streams need. */
export interface InboundOptions {
  readonly methods: ReadonlyMap<string, RpcMethod<unknown, unknown>>
  readonly maxConcurrentStreams: number
  readonly maxMessageBytes: number
  readonly observer: CallObserver
}

/** What a client's frames do to streams and their calls. Every error that it returns is the connection's end. */
export class Inbound implements StreamHost {
  readonly outbound: Outbound
  readonly #wake: () => void
  readonly #options: InboundOptions
  readonly #blocks = new BlockReader()
  readonly #streams = new StreamTable()
  #gone: GrpcCall[] = []
  #block: HeaderBlock | undefined
  /** What has come and was not given back, and as much of it as may be. */
  #outstanding = 0
  #creditable = 0
  #initialWindow = defaultWindowBytes
  /** No stream above it is served, once a drain has told so. */
  #lastServed = maxStreamId

  /** `wake` is called whenever something was queued, or a call has ended. */
  constructor(outbound: Outbound, wake: () => void, options: InboundOptions) {
    this.outbound = outbound
    this.#wake = wake
    this.#options = options
  }

  /** The highest stream that the client has begun. */
  get highestStream(): number {
    return this.#streams.highest
  }

  /** True once no stream is open and none will be. */
  get done(): boolean {
    return this.#lastServed < maxStreamId && this.#streams.size === 0
  }

  /** Calls whose streams are open. */
  get calls(): readonly GrpcCall[] {
    return this.#streams.all().flatMap(({ call }) => (call === undefined ? [] : [call]))
  }

  /** True within a block of headers, where nothing but its continuation may come. */
  get withinHeaders(): boolean {
    return this.#block !== undefined
  }

  wake(): void {
    this.#wake()
  }

  credit(bytes: number): void {
    this.#creditable += bytes
    if (this.#creditable < creditStepBytes) return
    this.outbound.windowUpdate(0, this.#creditable)
    this.#outstanding -= this.#creditable
    this.#creditable = 0
    this.#wake()
  }

  ended(stream: ServerStream, half: boolean): void {
    if (half) this.#reset(stream.id, errorCode.none)
    this.#remove(stream)
  }

  /** Tells calls that they are over. It is put off to here because calls end in the midst of their methods' work. */
  tellGone(): void {
    const gone = this.#gone
    this.#gone = []
    for (const call of gone) call.closed()
  }

  /** Serves no stream that has not begun; returns the last one. */
  cede(): number {
    this.#lastServed = this.#streams.highest
    return this.#lastServed
  }

  /** Nothing more can be sent. */
  abandonAll(): void {
    for (const stream of this.#streams.all()) this.#remove(stream)
  }

  /** The client's windows begin with another size. False when a stream's window grows beyond what there can be. */
  resizeWindows(initial: number): boolean {
    const more = initial - this.#initialWindow
    this.#initialWindow = initial
    return this.#streams.all().every((stream) => stream.widen(more))
  }

  /** A frame of a stream, or of the connection's flow control. */
  frame(type: number, flags: number, id: number, payload: Buffer): number | undefined {
    switch (type) {
      case frameType.data:
        return this.#onData(flags, id, payload)
      case frameType.headers:
        return this.#onHeaders(flags, id, payload)
      case frameType.continuation:
        return this.#onContinuation(flags, id, payload)
      case frameType.rstStream:
        return this.#onReset(id, payload)
      case frameType.windowUpdate:
        return this.#onWindowUpdate(id, payload)
      case frameType.priority:
        return this.#onPriority(id, payload)
      default:
        return undefined
    }
  }

  #onData(flags: number, id: number, payload: Buffer): number | undefined {
    if (id === 0 || this.#streams.isIdle(id)) return errorCode.protocol
    const data = withoutPadding(flags, payload)
    if (data === undefined) return errorCode.protocol
    this.#outstanding += payload.length
    if (this.#outstanding > connectionWindowBytes) return errorCode.flowControl
    const stream = this.#streams.get(id)
    if (stream === undefined || stream.halfClosed) {
      this.credit(payload.length)
      if (!this.#streams.wasReset(id)) this.#failStream(id, errorCode.streamClosed)
      return undefined
    }
    if (!stream.received(data, payload.length)) {
      this.credit(payload.length)
      this.#failStream(id, errorCode.flowControl)
      return undefined
    }
    if ((flags & frameFlag.endStream) !== 0) this.#endOf(stream)
    return undefined
  }

  #endOf(stream: ServerStream): void {
    if (!stream.receivedEnd()) this.#failStream(stream.id, errorCode.protocol)
  }

  #onHeaders(flags: number, id: number, payload: Buffer): number | undefined {
    if (id % 2 === 0) return errorCode.protocol
    let fragment = withoutPadding(flags, payload)
    if (fragment === undefined) return errorCode.protocol
    let selfDependent = false
    if ((flags & frameFlag.priority) !== 0) {
      if (fragment.length < 5) return errorCode.frameSize
      selfDependent = dependsOn(fragment) === id
      fragment = fragment.subarray(5)
    }
    const endStream = (flags & frameFlag.endStream) !== 0
    const block = new HeaderBlock(id, { endStream, selfDependent }, fragment)
    if ((flags & frameFlag.endHeaders) !== 0) return this.#onBlock(block)
    this.#block = block
    return undefined
  }

  #onContinuation(flags: number, id: number, payload: Buffer): number | undefined {
    const block = this.#block
    if (block === undefined || block.streamId !== id) return errorCode.protocol
    if (!block.add(payload)) return errorCode.enhanceYourCalm
    if ((flags & frameFlag.endHeaders) === 0) return undefined
    this.#block = undefined
    return this.#onBlock(block)
  }

  #onBlock(block: HeaderBlock): number | undefined {
    const headers = this.#blocks.read(block.join())
    if (headers === undefined) return errorCode.compression
    const id = block.streamId
    if (id <= this.#streams.highest) return this.#onTrailers(block, headers)
    this.#streams.begin(id)
    if (id > this.#lastServed || this.#streams.size >= this.#options.maxConcurrentStreams) {
      this.#reset(id, errorCode.refusedStream)
    } else if (block.selfDependent || !headers.isRequest) this.#reset(id, errorCode.protocol)
    else this.#open(block, headers)
    return undefined
  }

  #onTrailers(block: HeaderBlock, headers: RequestHeaders): number | undefined {
    const stream = this.#streams.get(block.streamId)
    if (stream === undefined) {
      return this.#streams.wasReset(block.streamId) ? undefined : errorCode.streamClosed
    }
    if (stream.halfClosed) this.#failStream(stream.id, errorCode.streamClosed)
    else if (!block.endStream || !headers.isTrailers) this.#failStream(stream.id, errorCode.protocol)
    else this.#endOf(stream)
    return undefined
  }

  #open(block: HeaderBlock, headers: RequestHeaders): void {
    const stream = new ServerStream(block.streamId, this, {
      sendWindow: this.#initialWindow,
      contentLength: headers.contentLength,
    })
    this.#streams.add(stream)
    if (headers.bytes > maxHeaderListBytes) stream.finish(headersTooLarge)
    else this.#admit(stream, headers)
    if (block.endStream && this.#streams.get(stream.id) === stream) this.#endOf(stream)
  }

  #admit(stream: ServerStream, headers: RequestHeaders): void {
    const { methods, observer, maxMessageBytes } = this.#options
    const admission = admit(headers.head, methods)
    switch (admission.kind) {
      case 'call': {
        const call = new GrpcCall(stream, admission.method, { observer, maxMessageBytes })
        stream.attach(call)
        call.open(admission.timeoutMs)
        return
      }
      case 'status':
        stream.finish(admission.status)
        return
      case 'http':
        stream.refuse(admission.status, 'This port speaks gRPC.\n')
        return
    }
  }

  #onReset(id: number, payload: Buffer): number | undefined {
    if (payload.length !== 4) return errorCode.frameSize
    if (id === 0 || this.#streams.isIdle(id)) return errorCode.protocol
    const stream = this.#streams.get(id)
    if (stream !== undefined) this.#remove(stream)
    return undefined
  }

  #onWindowUpdate(id: number, payload: Buffer): number | undefined {
    if (payload.length !== 4) return errorCode.frameSize
    const bytes = payload.readUInt32BE(0) & maxWindowBytes
    if (id === 0) {
      if (bytes === 0) return errorCode.protocol
      return this.outbound.widen(bytes) ? undefined : errorCode.flowControl
    }
    if (this.#streams.isIdle(id)) return errorCode.protocol
    const stream = this.#streams.get(id)
    if (stream === undefined) return undefined
    if (bytes === 0) this.#failStream(id, errorCode.protocol)
    else if (!stream.widen(bytes)) this.#failStream(id, errorCode.flowControl)
    return undefined
  }

  #onPriority(id: number, payload: Buffer): number | undefined {
    if (id === 0) return errorCode.protocol
    if (payload.length !== 5) {
      this.#failStream(id, errorCode.frameSize)
    } else if (dependsOn(payload) === id) this.#failStream(id, errorCode.protocol)
    return undefined
  }

  #remove(stream: ServerStream): void {
    stream.abandon()
    this.#streams.remove(stream.id)
    if (stream.call !== undefined) this.#gone.push(stream.call)
    this.#wake()
  }

  #reset(id: number, code: number): void {
    this.#streams.rememberReset(id)
    this.outbound.reset(id, code)
    this.#wake()
  }

  /** The stream cannot go on; the connection can. */
  #failStream(id: number, code: number): void {
    this.#reset(id, code)
    const stream = this.#streams.get(id)
    if (stream !== undefined) this.#remove(stream)
  }
}

const dependsOn = (priority: Buffer): number => priority.readUInt32BE(0) & maxStreamId

/** A padded payload's content; undefined when there is more padding than payload. */
const withoutPadding = (flags: number, payload: Buffer): Buffer | undefined => {
  if ((flags & frameFlag.padded) === 0) return payload
  const padding = payload[0]
  if (padding === undefined || padding >= payload.length) return undefined
  return payload.subarray(1, payload.length - padding)
}
