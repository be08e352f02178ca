import { codeAt } from '../../collections/code-at.ts'

/** Shorter texts are written faster by a loop than by a call out of JavaScript. */
const maxLoopLength = 64

/**
 * Writes protobuf from its end to its beginning, so that every length is known when it is written: one pass, no
 * measuring. Fields are therefore given last one first.
 */
export class WireWriter {
  #bytes: Buffer
  #at: number

  /** `initialBytes` is kept between messages and grows with the longest one. */
  constructor(initialBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(initialBytes)
    this.#at = initialBytes
  }

  /** A position to measure a nested message from, before its first (that is its last) field is written. */
  mark(): number {
    return this.#bytes.length - this.#at
  }

  /** Ends the nested message that was begun at `mark` with its length and field number. */
  nested(field: number, mark: number): void {
    this.#varint(this.mark() - mark)
    this.#varint(field * 8 + 2)
  }

  /** A number that is not negative. */
  int(field: number, value: number): void {
    this.#varint(value)
    this.#varint(field * 8)
  }

  bytes(field: number, value: Uint8Array): void {
    const mark = this.mark()
    this.#reserve(value.length)
    this.#at -= value.length
    this.#bytes.set(value, this.#at)
    this.nested(field, mark)
  }

  /** The low byte of each character. */
  latin1(field: number, text: string): void {
    const mark = this.mark()
    const { length } = text
    this.#reserve(length)
    const at = this.#at - length
    this.#at = at
    const bytes = this.#bytes
    if (length > maxLoopLength) bytes.write(text, at, length, 'latin1')
    else for (let index = 0; index < length; index++) bytes[at + index] = codeAt(text, index)
    this.nested(field, mark)
  }

  utf8(field: number, text: string): void {
    const mark = this.mark()
    if (text.length <= maxLoopLength && this.#ascii(text)) {
      this.nested(field, mark)
      return
    }
    const length = Buffer.byteLength(text)
    this.#reserve(length)
    this.#at -= length
    this.#bytes.write(text, this.#at, length)
    this.nested(field, mark)
  }

  /** A copy of what was written; the writer is empty then. */
  finish(): Buffer {
    const { length } = this.#bytes
    const message = Buffer.allocUnsafe(length - this.#at)
    this.#bytes.copy(message, 0, this.#at)
    this.#at = length
    return message
  }

  /** Forgets what was written. */
  reset(): void {
    this.#at = this.#bytes.length
  }

  /** Whether it was ASCII; nothing is written of a text that is not. */
  #ascii(text: string): boolean {
    const { length } = text
    this.#reserve(length)
    const at = this.#at - length
    const bytes = this.#bytes
    for (let index = 0; index < length; index++) {
      const code = codeAt(text, index)
      if (code > 0x7f) return false
      bytes[at + index] = code
    }
    this.#at = at
    return true
  }

  #varint(value: number): void {
    this.#reserve(10)
    const bytes = this.#bytes
    let length = 1
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++
    const at = this.#at - length
    this.#at = at
    let rest = value
    for (let index = 0; index < length - 1; index++) {
      bytes[at + index] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    bytes[at + length - 1] = rest
  }

  #reserve(length: number): void {
    if (length <= this.#at) return
    const used = this.mark()
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, used + length))
    this.#bytes.copy(grown, grown.length - used, this.#at)
    this.#at = grown.length - used
    this.#bytes = grown
  }
}
