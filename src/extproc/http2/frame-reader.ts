import { defaultFrameBytes, errorCode, frameHeaderBytes, preface } from './frames.ts'

/** Takes one whole frame; returns false to be given no more. */
export type TakeFrame = (type: number, flags: number, streamId: number, payload: Buffer) => boolean

/** Cuts what a client sends into its preface and frames. A frame that came in one piece is a view of it. */
export class FrameReader {
  readonly #take: TakeFrame
  readonly #header: Buffer = Buffer.allocUnsafe(frameHeaderBytes)
  #prefaceRead = 0
  /** The frame that is gathered from pieces: its header first, then its payload. */
  #headerHave = 0
  #payload: Buffer | undefined
  #payloadHave = 0

  constructor(take: TakeFrame) {
    this.#take = take
  }

  /** Reads the next piece; returns the error of a connection that cannot be read on. */
  read(piece: Buffer): number | undefined {
    let at = 0
    if (this.#prefaceRead < preface.length) {
      at = Math.min(preface.length - this.#prefaceRead, piece.length)
      if (preface.compare(piece, 0, at, this.#prefaceRead, this.#prefaceRead + at) !== 0) return errorCode.protocol
      this.#prefaceRead += at
    }
    while (at < piece.length) {
      const next = this.#headerHave > 0 ? this.#gather(piece, at) : this.#whole(piece, at)
      if (next === 'too-large') return errorCode.frameSize
      if (next === 'enough') return undefined
      at = next
    }
    return undefined
  }

  #whole(piece: Buffer, at: number): number | 'too-large' | 'enough' {
    const start = at + frameHeaderBytes
    if (start > piece.length) return this.#gather(piece, at)
    const length = piece.readUIntBE(at, 3)
    if (length > defaultFrameBytes) return 'too-large'
    const end = start + length
    if (end > piece.length) return this.#gather(piece, at)
    return this.#give(piece, at, piece.subarray(start, end)) ? end : 'enough'
  }

  #gather(piece: Buffer, from: number): number | 'too-large' | 'enough' {
    let at = from
    if (this.#headerHave < frameHeaderBytes) {
      const copied = piece.copy(this.#header, this.#headerHave, at)
      this.#headerHave += copied
      at += copied
      if (this.#headerHave < frameHeaderBytes) return at
    }
    const length = this.#header.readUIntBE(0, 3)
    if (length > defaultFrameBytes) return 'too-large'
    this.#payload ??= Buffer.allocUnsafe(length)
    const payload = this.#payload
    const copied = piece.copy(payload, this.#payloadHave, at)
    this.#payloadHave += copied
    at += copied
    if (this.#payloadHave < length) return at
    this.#headerHave = 0
    this.#payloadHave = 0
    this.#payload = undefined
    return this.#give(this.#header, 0, payload) ? at : 'enough'
  }

  #give(header: Buffer, at: number, payload: Buffer): boolean {
    return this.#take(header[at + 3] ?? 0, header[at + 4] ?? 0, header.readUInt32BE(at + 5) & 0x7fff_ffff, payload)
  }
}
