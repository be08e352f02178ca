import { HpackDecoder } from './hpack/hpack-decoder.ts'
import { RequestHeaders } from './request-headers.ts'

/** Longer blocks are not kept to be known again. */
const longestKnown = 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Reads the blocks of headers of one connection. A client that makes the same call again and again sends the same bytes, once its table has
 * settled: then they mean what they meant the last time.
 */
export class BlockReader {
  readonly #hpack = new HpackDecoder()
  #known = nothing
  #knownHeaders: RequestHeaders | undefined

  /** Undefined when the block cannot be read: the connection is of no use then. */
  read(block: Buffer): RequestHeaders | undefined {
    if (this.#knownHeaders !== undefined && block.equals(this.#known)) return this.#knownHeaders
    const { changes } = this.#hpack
    const headers = new RequestHeaders()
    if (!this.#hpack.decode(block, (field) => headers.add(field))) return undefined
    const isRepeatable = this.#hpack.changes === changes && block.length <= longestKnown
    // What a block means may follow from what was in the table: what another block has put there makes it a new one.
    this.#knownHeaders = isRepeatable ? headers : undefined
    this.#known = isRepeatable ? Buffer.from(block) : nothing
    return headers
  }
}
