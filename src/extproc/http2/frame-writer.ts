import { frameHeaderBytes, frameType } from './frames.ts'
import { prefixBytes } from './message-reader.ts'

/** Memory is taken in pieces of this size; each is used up once and left to the garbage collector. */
const slabBytes = 65_536

/** Connections that never carry a call need less. */
const firstSlabBytes = 2048

/** Gathers the frames of one connection until they are sent, so that many of them make one write. */
export class FrameWriter {
  #slab: Buffer = Buffer.allocUnsafeSlow(0)
  #start = 0
  #at = 0
  #full: Buffer[] = []

  /** True when there is nothing to send. */
  get empty(): boolean {
    return this.#at === this.#start && this.#full.length === 0
  }

  /** What was written since the last time. */
  take(): readonly Buffer[] {
    const pieces = this.#full
    if (this.#at > this.#start) pieces.push(this.#slab.subarray(this.#start, this.#at))
    this.#full = []
    this.#start = this.#at
    return pieces
  }

  /** Begins a frame whose payload of `length` bytes must follow at once. */
  #begin(length: number, type: number, flags: number, streamId: number): void {
    this.#reserve(frameHeaderBytes + length)
    const slab = this.#slab
    const at = this.#at
    slab[at] = length >>> 16
    slab[at + 1] = length >>> 8
    slab[at + 2] = length
    slab[at + 3] = type
    slab[at + 4] = flags
    this.#at = at + 5
    this.#uint32(streamId)
  }

  /** A frame with this payload, which must not be longer than a frame may be. */
  frame(type: number, flags: number, streamId: number, payload: Buffer): void {
    this.#begin(payload.length, type, flags, streamId)
    this.#copy(payload)
  }

  /** A frame whose payload is one number, or two. */
  numbers(type: number, streamId: number, first: number, second?: number): void {
    this.#begin(second === undefined ? 4 : 8, type, 0, streamId)
    this.#uint32(first)
    if (second !== undefined) this.#uint32(second)
  }

  /** A gRPC message that fits into one frame, with what stands before it. */
  message(streamId: number, message: Buffer): void {
    this.#begin(prefixBytes + message.length, frameType.data, 0, streamId)
    this.#slab[this.#at++] = 0
    this.#uint32(message.length)
    this.#copy(message)
  }

  #copy(bytes: Buffer): void {
    bytes.copy(this.#slab, this.#at)
    this.#at += bytes.length
  }

  #uint32(value: number): void {
    const slab = this.#slab
    const at = this.#at
    slab[at] = value >>> 24
    slab[at + 1] = value >>> 16
    slab[at + 2] = value >>> 8
    slab[at + 3] = value
    this.#at = at + 4
  }

  #reserve(bytes: number): void {
    if (this.#slab.length - this.#at >= bytes) return
    if (this.#at > this.#start) this.#full.push(this.#slab.subarray(this.#start, this.#at))
    const wanted = this.#slab.length === 0 ? firstSlabBytes : slabBytes
    this.#slab = Buffer.allocUnsafeSlow(Math.max(wanted, bytes))
    this.#start = 0
    this.#at = 0
  }
}
