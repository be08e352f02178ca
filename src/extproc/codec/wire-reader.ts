import { CodecError } from './codec-error.ts'

/** Protobuf's wire types, as far as they are read. */
const wireType = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const

/** Groups within groups that are skipped; Envoy writes none at all. */
const maxGroupDepth = 100

/**
 * Walks through protobuf fields without copying. The position after a nested message's length is the caller's to keep:
 * `end` bounds every read, so that no field reaches beyond the message it stands in.
 */
export class WireReader {
  readonly #bytes: Buffer
  #at = 0
  #end: number
  #high = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#end = bytes.length
  }

  /** Where the next read begins. */
  get at(): number {
    return this.#at
  }

  /** False once the message that is being read has no field left. */
  get more(): boolean {
    return this.#at < this.#end
  }

  /** The next field's number times eight plus its wire type, so that one comparison tells both. */
  tag(): number {
    const tag = this.uint32()
    if (tag < 8 || this.#high !== 0) throw new CodecError('a field without a number')
    return tag
  }

  /** Goes to the next field with this tag, past others; false: the message that is being read has none left. */
  next(wanted: number): boolean {
    while (this.more) {
      const tag = this.tag()
      if (tag === wanted) return true
      this.skip(tag)
    }
    return false
  }

  /** A varint's low 32 bits, unsigned. */
  uint32(): number {
    const bytes = this.#bytes
    const end = this.#end
    let at = this.#at
    let low = 0
    this.#high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw new CodecError('a number is cut off')
      const byte = bytes[at++] ?? 0
      if (shift < 28) low |= (byte & 0x7f) << shift
      else if (shift === 28) {
        low |= (byte & 0x0f) << 28
        this.#high = (byte & 0x7f) >> 4
      } else if (shift < 63) this.#high |= (byte & 0x7f) << (shift - 32)
      else this.#high |= (byte & 0x01) << 31
      if (byte < 0x80) {
        this.#at = at
        return low >>> 0
      }
    }
    throw new CodecError('a number is too long')
  }

  /** A varint as signed 32 bits, which cuts what is larger. */
  int32(): number {
    return this.uint32() | 0
  }

  bool(): boolean {
    return this.uint32() !== 0 || this.#high !== 0
  }

  /** Reads the length of a nested message and enters it; returns the end of the outer one, to leave to. */
  enter(): number {
    const outer = this.#end
    const start = this.span()
    this.#end = this.#at
    this.#at = start
    return outer
  }

  /** Back to the outer message, behind the nested one. */
  leave(outer: number): void {
    this.#at = this.#end
    this.#end = outer
  }

  /** Skips a length and its bytes; returns where the bytes began. Their end is `at`. */
  span(): number {
    return this.#take(this.#length())
  }

  /** A view of the bytes, not a copy. */
  view(): Buffer {
    const start = this.span()
    return this.#bytes.subarray(start, this.#at)
  }

  text(): string {
    const start = this.span()
    return this.#bytes.toString('utf8', start, this.#at)
  }

  /** Passes over the content of a field that is not known. */
  skip(tag: number): void {
    let depth = 0
    let type = tag & 7
    for (;;) {
      switch (type) {
        case wireType.varint:
          this.uint32()
          break
        case wireType.fixed64:
          this.#take(8)
          break
        case wireType.bytes:
          this.span()
          break
        case wireType.fixed32:
          this.#take(4)
          break
        case wireType.startGroup:
          if (++depth > maxGroupDepth) throw new CodecError('groups are nested too deeply')
          break
        case wireType.endGroup:
          if (--depth < 0) throw new CodecError('a group ends that never began')
          break
        default:
          throw new CodecError('a wire type that does not exist')
      }
      if (depth === 0) return
      type = this.tag() & 7
    }
  }

  #length(): number {
    const length = this.uint32()
    if (this.#high !== 0) throw new CodecError('a length that cannot be')
    return length
  }

  /** Bounds are checked by subtraction: a length near 2^32 must not overflow into a valid one. */
  #take(length: number): number {
    const at = this.#at
    if (length > this.#end - at) throw new CodecError('a field is cut off')
    this.#at = at + length
    return at
  }
}
