import { DynamicTable } from './dynamic-table.ts'
import { createHeaderField, type HeaderField } from './header-field.ts'
import { decodeHuffman } from './huffman.ts'
import { staticTable } from './static-table.ts'

/** What HTTP/2 begins with. It is not changed here, so that no peer may ask for more. */
const tableBytes = 4096

/** Longer than any length or index can be in a block of allowed size. */
const maxInteger = 0x0fff_ffff

/**
 * HPACK's reading side (RFC 7541) for one connection. Every block must be decoded, in order, or the peer's table and this one
 * part ways.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable(tableBytes)
  #block: Buffer = Buffer.alloc(0)
  #at = 0
  #changes = 0

  /** How often the table was changed. While it is not, the same block means the same. */
  get changes(): number {
    return this.#changes
  }

  /** Gives each field to `take`. False when the block cannot be read: the connection is of no use then. */
  decode(block: Buffer, take: (field: HeaderField) => void): boolean {
    this.#block = block
    this.#at = 0
    let resizable = true
    while (this.#at < block.length) {
      const first = block[this.#at] ?? 0
      if ((first & 0xe0) === 0x20) {
        if (!resizable || !this.#resize()) return false
        continue
      }
      resizable = false
      const field = first >= 0x80 ? this.#indexed() : this.#literal(first)
      if (field === undefined) return false
      take(field)
    }
    return true
  }

  #resize(): boolean {
    const bytes = this.#integer(0x1f)
    if (bytes === undefined || bytes > tableBytes) return false
    this.#changes += 1
    this.#table.resize(bytes)
    return true
  }

  #indexed(): HeaderField | undefined {
    const index = this.#integer(0x7f)
    return index === undefined ? undefined : this.#lookUp(index)
  }

  #literal(first: number): HeaderField | undefined {
    const remembered = (first & 0x40) !== 0
    const index = this.#integer(remembered ? 0x3f : 0x0f)
    if (index === undefined) return undefined
    const name = index === 0 ? this.#text() : this.#lookUp(index)?.name
    const value = name === undefined ? undefined : this.#text()
    if (name === undefined || value === undefined) return undefined
    const field = createHeaderField(name, value)
    if (!remembered) return field
    this.#changes += 1
    this.#table.add(field)
    return field
  }

  #lookUp(index: number): HeaderField | undefined {
    return index <= staticTable.length ? staticTable[index - 1] : this.#table.get(index - staticTable.length - 1)
  }

  #integer(mask: number): number | undefined {
    const block = this.#block
    let value = (block[this.#at++] ?? 0) & mask
    if (value < mask) return value
    for (let factor = 1; this.#at < block.length; factor *= 128) {
      const byte = block[this.#at++] ?? 0
      value += (byte & 0x7f) * factor
      if (value > maxInteger || factor > maxInteger) return undefined
      if (byte < 0x80) return value
    }
    return undefined
  }

  #text(): string | undefined {
    const block = this.#block
    if (this.#at >= block.length) return undefined
    const coded = (block[this.#at] ?? 0) >= 0x80
    const length = this.#integer(0x7f)
    if (length === undefined || length > block.length - this.#at) return undefined
    const start = this.#at
    this.#at += length
    return coded ? decodeHuffman(block, start, this.#at) : block.toString('latin1', start, this.#at)
  }
}
