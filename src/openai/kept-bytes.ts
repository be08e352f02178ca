/** Memory of a block beside its bytes. */
const blockOverheadBytes = 256
const maxBlockBytes = 65_536

interface Block {
  readonly memory: Buffer
  used: number
}

/**
 * Bytes that are kept, in the order they came, in memory of their own. A piece of a message would retain all of the
 * message, and a million pieces of one byte would take a thousand times their length.
 */
export class KeptBytes {
  #blocks: Block[] = []
  #length = 0
  #takenBytes = 0

  /** Bytes that are kept. */
  get length(): number {
    return this.#length
  }

  /** Memory that they take. */
  get takenBytes(): number {
    return this.#takenBytes
  }

  /** Keeps a copy. */
  add(bytes: Buffer): void {
    let rest = bytes
    const last = this.#blocks.at(-1)
    if (last !== undefined) {
      const copied = rest.copy(last.memory, last.used)
      last.used += copied
      this.#length += copied
      rest = rest.subarray(copied)
    }
    if (rest.length === 0) return
    // With room for a quarter more, so that there are few blocks and little is unused.
    const memory = Buffer.allocUnsafeSlow(Math.max(rest.length, Math.min(this.#length >> 2, maxBlockBytes)))
    this.adopt(memory, rest.copy(memory))
  }

  /** Keeps the first `used` bytes of memory that nobody else uses, without a copy. */
  adopt(memory: Buffer, used = memory.length): void {
    this.#blocks.push({ memory, used })
    this.#length += used
    this.#takenBytes += memory.length + blockOverheadBytes
  }

  /** Returns what was kept. */
  take(): readonly Buffer[] {
    const blocks = this.#blocks
    this.#blocks = []
    this.#length = 0
    this.#takenBytes = 0
    return blocks.map(({ memory, used }) => memory.subarray(0, used))
  }
}
