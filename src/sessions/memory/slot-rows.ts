import { codeAt } from '../../collections/code-at.ts'

/** Stands where there is no slot. */
export const noSlot = -1

export interface RowLayout {
  /** How many characters each row's text has, all of one byte. */
  readonly textLength: number
  /** How many numbers stand behind it. */
  readonly numbers: number
}

/** A power of two. A page of sessions is a megabyte, and what was not written yet is none of the process's memory. */
const rowsPerPage = 4096
const pageBits = Math.log2(rowsPerPage)
const bytesPerNumber = 8

/**
 * Rows of one text and some numbers, by slot: 0, 1, 2, … A million objects lie anywhere in the heap, each of their numbers in a place of its own, and
 * are looked through by every full collection of garbage; a row is one stretch of memory that no collection looks at. Rows begin with zeros, and never
 * move: there are more pages when there are more rows.
 */
export class SlotRows {
  readonly #textLength: number
  /** Of a row, in numbers. */
  readonly #width: number
  readonly #textWidth: number
  readonly #pages: Float64Array[] = []
  readonly #bytes: Buffer[] = []

  constructor({ textLength, numbers }: RowLayout) {
    this.#textLength = textLength
    this.#textWidth = Math.ceil(textLength / bytesPerNumber)
    this.#width = this.#textWidth + numbers
  }

  /** Bytes of one row. */
  get rowBytes(): number {
    return this.#width * bytesPerNumber
  }

  /** To be called for every slot before its row is used for the first time, in the order of slots. */
  reserve(slot: number): void {
    if (slot >> pageBits < this.#pages.length) return
    const page = new ArrayBuffer(rowsPerPage * this.rowBytes)
    this.#pages.push(new Float64Array(page))
    this.#bytes.push(Buffer.from(page))
  }

  number(slot: number, column: number): number {
    return this.#pages[slot >> pageBits]?.[this.placeOf(slot) + column] ?? 0
  }

  setNumber(slot: number, column: number, value: number): void {
    const page = this.#pages[slot >> pageBits]
    if (page !== undefined) page[this.placeOf(slot) + column] = value
  }

  /** The numbers of many rows, among them those of the slot from `placeOf` on: for whoever needs several of them. */
  pageOf(slot: number): Float64Array {
    return this.#pages[slot >> pageBits] ?? noNumbers
  }

  placeOf(slot: number): number {
    return (slot & (rowsPerPage - 1)) * this.#width + this.#textWidth
  }

  text(slot: number): string {
    const start = this.#textAt(slot)
    return this.#bytes[slot >> pageBits]?.toString('latin1', start, start + this.#textLength) ?? ''
  }

  /** @throws RangeError for a text of another length than a row has. */
  setText(slot: number, text: string): void {
    if (text.length !== this.#textLength) throw new RangeError(`A text of ${text.length} characters`)
    this.#bytes[slot >> pageBits]?.write(text, this.#textAt(slot), 'latin1')
  }

  /** Whether the row's text begins with another one. */
  startsWith(slot: number, start: string): boolean {
    const bytes = this.#bytes[slot >> pageBits]
    if (bytes === undefined || start.length > this.#textLength) return false
    const at = this.#textAt(slot)
    for (let index = 0; index < start.length; index += 1) {
      if (bytes[at + index] !== codeAt(start, index)) return false
    }
    return true
  }

  #textAt(slot: number): number {
    return (slot & (rowsPerPage - 1)) * this.rowBytes
  }
}

const noNumbers = new Float64Array(0)
