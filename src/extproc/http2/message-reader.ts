/** What stands before a message: a byte that says whether it is compressed, and its length. */
export const prefixBytes = 5

/** A message that goes over several pieces is gathered in a buffer that begins with this size and doubles. */
const firstGatherBytes = 65_536

/** Why a peer's bytes cannot be read on. */
export type ReadFault = 'compressed' | 'too-large'

/** Takes whole messages; returns false to be given no more. */
export type TakeMessage = (message: Buffer) => boolean

/**
 * Cuts a stream of bytes into gRPC's messages. A message that came in one piece is a view of that piece; one that did
 * not is gathered with no more than twice the memory that has been received of it, whatever its length claims.
 */
export class MessageReader {
  readonly #maxMessageBytes: number
  readonly #take: TakeMessage
  #gathered: Buffer | undefined
  #have = 0

  constructor(maxMessageBytes: number, take: TakeMessage) {
    this.#maxMessageBytes = maxMessageBytes
    this.#take = take
  }

  /** True within a message. */
  get unfinished(): boolean {
    return this.#have > 0
  }

  /** Reads the next piece. After a fault nothing more may be read. */
  read(piece: Buffer): ReadFault | undefined {
    let at = 0
    while (at < piece.length) {
      if (this.#have === 0 && piece.length - at >= prefixBytes) {
        const fault = this.#check(piece, at)
        if (fault !== undefined) return fault
        const end = at + prefixBytes + piece.readUInt32BE(at + 1)
        if (end <= piece.length) {
          if (!this.#take(piece.subarray(at + prefixBytes, end))) return undefined
          at = end
          continue
        }
      }
      const taken = this.#gather(piece, at)
      if (typeof taken === 'string') return taken
      if (taken === 0) return undefined
      at += taken
    }
    return undefined
  }

  /** Returns how many bytes were taken, 0 when no more are wanted. */
  #gather(piece: Buffer, at: number): number | ReadFault {
    const wanted = this.#have < prefixBytes ? prefixBytes : this.#messageEnd()
    const count = Math.min(wanted - this.#have, piece.length - at)
    const gathered = this.#reserve(this.#have + count, Math.max(wanted, prefixBytes))
    piece.copy(gathered, this.#have, at, at + count)
    this.#have += count
    if (this.#have < prefixBytes) return count
    if (this.#have === prefixBytes) {
      const fault = this.#check(gathered, 0)
      if (fault !== undefined) return fault
    }
    const end = this.#messageEnd()
    if (this.#have < end) return count
    this.#gathered = undefined
    this.#have = 0
    return this.#take(gathered.subarray(prefixBytes, end)) ? count : 0
  }

  #messageEnd(): number {
    return prefixBytes + (this.#gathered?.readUInt32BE(1) ?? 0)
  }

  #check(bytes: Buffer, at: number): ReadFault | undefined {
    if (bytes[at] !== 0) return 'compressed'
    return bytes.readUInt32BE(at + 1) > this.#maxMessageBytes ? 'too-large' : undefined
  }

  #reserve(bytes: number, atMost: number): Buffer {
    const old = this.#gathered
    if (old !== undefined && old.length >= bytes) return old
    const wanted = Math.max(bytes, Math.min(Math.max(2 * bytes, firstGatherBytes), atMost))
    const grown = Buffer.allocUnsafe(wanted)
    old?.copy(grown, 0, 0, this.#have)
    this.#gathered = grown
    return grown
  }
}
