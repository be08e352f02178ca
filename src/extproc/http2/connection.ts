import type { Socket } from 'node:net'
import { FrameReader } from './frame-reader.ts'
import { defaultWindowBytes, errorCode, frameFlag, frameType, maxStreamId, settingId } from './frames.ts'
import type { GrpcCall } from './grpc-call.ts'
import { connectionWindowBytes, Inbound, type InboundOptions, maxHeaderListBytes } from './inbound.ts'
import { Outbound } from './outbound.ts'
import { readPeerSettings, settingsPayload } from './peer-settings.ts'
import { streamWindowBytes } from './server-stream.ts'

/** A connection that ends is given this long to take what was queued. */
const partingMs = 1000

const pingBytes = 8
const keepalivePing = Buffer.from('keepaliv', 'latin1')
const drainPing = Buffer.from('drainnow', 'latin1')
const nothing = Buffer.alloc(0)

/** What the connections of one server have in common. */
export interface ConnectionOptions extends InboundOptions {
  readonly closed: (connection: Http2Connection) => void
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
}

/** How long a client may be silent. */
export interface KeepaliveTimes {
  /** A client that says nothing for so long is asked whether it is there. */
  readonly idleMs: number
  /** One that does not answer, or does not begin, is given up. */
  readonly timeoutMs: number
}

/** One client's connection, from its preface to its end: the server's side of HTTP/2 (RFC 9113). */
export class Http2Connection {
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #reader = new FrameReader((type, flags, id, payload) => this.#onFrame(type, flags, id, payload))
  readonly #outbound: Outbound
  readonly #inbound: Inbound
  readonly #run = (): void => this.#turn()
  #begun = false
  #awake = false
  #over = false
  #draining = false
  #heardAt: number
  #askedAt: number | undefined

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket
    this.#options = options
    this.#outbound = new Outbound(socket)
    this.#inbound = new Inbound(this.#outbound, () => this.#wake(), options)
    this.#heardAt = options.now()
    this.#outbound.frame(
      frameType.settings,
      0,
      0,
      settingsPayload([
        [settingId.maxConcurrentStreams, options.maxConcurrentStreams],
        [settingId.initialWindowSize, streamWindowBytes],
        [settingId.maxHeaderListSize, maxHeaderListBytes],
      ]),
    )
    this.#outbound.windowUpdate(0, connectionWindowBytes - defaultWindowBytes)
    this.#wake()
    socket.on('data', (piece: Buffer) => this.#onData(piece))
    socket.on('drain', () => socket.resume())
    socket.on('error', () => {})
    socket.once('close', () => this.#onClose())
  }

  /** Calls that are not over. */
  get calls(): readonly GrpcCall[] {
    return this.#inbound.calls
  }

  /** Lets the streams that are open end, and takes no new ones; the connection closes then. */
  drain(): void {
    if (this.#draining || this.#over) return
    this.#draining = true
    // Streams that are on their way are still served: the ping comes back behind the last of them.
    this.#outbound.goaway(maxStreamId, errorCode.none)
    this.#outbound.frame(frameType.ping, 0, 0, drainPing)
    this.#wake()
  }

  /** Sends what is queued and closes; a client that takes nothing is cut off. */
  close(code: number = errorCode.none): void {
    if (this.#over) return
    this.#over = true
    this.#outbound.goaway(this.#inbound.highestStream, code)
    this.#inbound.abandonAll()
    this.#turn()
    this.#socket.resume()
    this.#socket.destroySoon()
    const timer = setTimeout(() => this.#socket.destroy(), partingMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  /** Looks whether the client is still there. */
  checkAlive({ idleMs, timeoutMs }: KeepaliveTimes): void {
    const now = this.#options.now()
    const waitingSince = this.#begun ? this.#askedAt : this.#heardAt
    if (waitingSince !== undefined) {
      if (now - waitingSince >= timeoutMs) this.#socket.destroy()
      return
    }
    if (now - this.#heardAt < idleMs) return
    this.#askedAt = now
    this.#outbound.frame(frameType.ping, 0, 0, keepalivePing)
    this.#wake()
  }

  /** Sends what was queued once everything that happens now has happened, so that many answers make one write. */
  #wake(): void {
    if (this.#awake) return
    this.#awake = true
    process.nextTick(this.#run)
  }

  #turn(): void {
    this.#awake = false
    this.#inbound.tellGone()
    if (this.#inbound.done) this.close()
    this.#outbound.flush()
  }

  #onData(piece: Buffer): void {
    if (this.#over) return
    if (this.#begun) {
      this.#heardAt = this.#options.now()
      this.#askedAt = undefined
    }
    const code = this.#reader.read(piece)
    if (code !== undefined) this.close(code)
  }

  #onClose(): void {
    this.#over = true
    this.#inbound.abandonAll()
    this.#turn()
    this.#options.closed(this)
  }

  #onFrame(type: number, flags: number, id: number, payload: Buffer): boolean {
    const code = this.#dispatch(type, flags, id, payload)
    if (code !== undefined) this.close(code)
    return !this.#over
  }

  /** Returns the error of the connection, if it is one. */
  #dispatch(type: number, flags: number, id: number, payload: Buffer): number | undefined {
    if (!this.#begun) {
      if (type !== frameType.settings || (flags & frameFlag.ack) !== 0) return errorCode.protocol
      this.#begun = true
    }
    if (this.#inbound.withinHeaders && type !== frameType.continuation) return errorCode.protocol
    switch (type) {
      case frameType.settings:
        return this.#onSettings(flags, id, payload)
      case frameType.ping:
        return this.#onPing(flags, id, payload)
      case frameType.goaway:
        return id === 0 ? undefined : errorCode.protocol
      case frameType.pushPromise:
        return errorCode.protocol
      default:
        return this.#inbound.frame(type, flags, id, payload)
    }
  }

  #onSettings(flags: number, id: number, payload: Buffer): number | undefined {
    if (id !== 0) return errorCode.protocol
    if ((flags & frameFlag.ack) !== 0) return payload.length === 0 ? undefined : errorCode.frameSize
    const settings = readPeerSettings(payload)
    if (settings.kind === 'error') return settings.code
    // The client counts by its new windows once it has the acknowledgement: data that they let through must come behind it.
    this.#outbound.frame(frameType.settings, frameFlag.ack, 0, nothing)
    this.#wake()
    return settings.initialWindowBytes === undefined || this.#inbound.resizeWindows(settings.initialWindowBytes)
      ? undefined
      : errorCode.flowControl
  }

  #onPing(flags: number, id: number, payload: Buffer): number | undefined {
    if (payload.length !== pingBytes) return errorCode.frameSize
    if (id !== 0) return errorCode.protocol
    if ((flags & frameFlag.ack) === 0) this.#outbound.frame(frameType.ping, frameFlag.ack, 0, payload)
    else if (this.#draining && payload.equals(drainPing)) this.#outbound.goaway(this.#inbound.cede(), errorCode.none)
    this.#wake()
    return undefined
  }
}
