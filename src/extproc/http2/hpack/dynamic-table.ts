import type { HeaderField } from './header-field.ts'

/** The fields that a peer has sent and may name again; the oldest ones leave when it is full. */
export class DynamicTable {
  /** Oldest first; what has left stays before `#first` until enough of it lies there. */
  #fields: HeaderField[] = []
  #first = 0
  #size = 0
  #maxSize: number

  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  /** The newest field has index 0. */
  get(index: number): HeaderField | undefined {
    const place = this.#fields.length - 1 - index
    return place < this.#first ? undefined : this.#fields[place]
  }

  /** A field larger than the table empties it, and does not enter. */
  add(field: HeaderField): void {
    this.#evictTo(this.#maxSize - field.size)
    if (field.size > this.#maxSize) return
    this.#fields.push(field)
    this.#size += field.size
  }

  resize(maxSize: number): void {
    this.#maxSize = maxSize
    this.#evictTo(maxSize)
  }

  #evictTo(size: number): void {
    while (this.#size > size && this.#first < this.#fields.length) {
      this.#size -= this.#fields[this.#first++]?.size ?? 0
    }
    if (this.#first < 64 || 2 * this.#first < this.#fields.length) return
    this.#fields = this.#fields.slice(this.#first)
    this.#first = 0
  }
}
