import type { ByteBudget } from './byte-budget.ts'

const firstBytes = 4096

/** Bytes collected piece by piece, copied, within a limit of their own and a budget that they share with others. */
export class GrowingBytes {
  readonly #budget: ByteBudget
  readonly #maxBytes: number
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(options: { readonly budget: ByteBudget; readonly maxBytes: number }) {
    this.#budget = options.budget
    this.#maxBytes = options.maxBytes
  }

  /** `false`: there is no room for them; what was collected so far stays. */
  append(bytes: Buffer): boolean {
    if (!this.#makeRoom(this.#length + bytes.length)) return false
    bytes.copy(this.#buffer, this.#length)
    this.#length += bytes.length
    return true
  }

  /** What was collected; only valid until the next `append` or `release`. */
  view(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Forgets everything and gives its memory back. */
  release(): void {
    this.#budget.give(this.#buffer.length)
    this.#buffer = Buffer.alloc(0)
    this.#length = 0
  }

  #makeRoom(bytes: number): boolean {
    const held = this.#buffer.length
    if (bytes <= held) return true
    if (bytes > this.#maxBytes) return false
    const capacity = Math.min(this.#maxBytes, Math.max(bytes, held * 2, firstBytes))
    // Both buffers live while one is copied into the other.
    if (!this.#budget.take(capacity)) return false
    const grown = Buffer.allocUnsafeSlow(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
    this.#budget.give(held)
    return true
  }
}
