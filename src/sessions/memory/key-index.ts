import { codeAt } from '../../collections/code-at.ts'
import { noSlot, type SlotRows } from './slot-rows.ts'

/** Tables, each of which grows by itself: to grow a single one for a million keys would hold everybody up. A power of two. */
const tableCount = 64
const tableBits = Math.log2(tableCount)
const firstCapacity = 16

/** How many characters of a key tell it from all others, and are what it is found by. */
export const keyStartLength = 22

/**
 * Finds the slots of rows by their texts, which begin differently: keys that nobody outside can choose, such as digests of ids that are made here.
 * (Those that are looked for may be anything.) Of a key it has four bytes and its slot, and looks at the row to be sure. Every operation is O(1).
 */
export class KeyIndex {
  readonly #rows: SlotRows
  readonly #tables = Array.from({ length: tableCount }, () => new HashTable())
  #size = 0

  constructor(rows: SlotRows) {
    this.#rows = rows
  }

  get size(): number {
    return this.#size
  }

  /** The slot whose text is the key, or begins with it, if the key has `keyStartLength` characters at least; else `noSlot`. */
  find(key: string): number {
    const hash = hashOf(key)
    const table = this.#tableOf(hash)
    for (let place = table.placeOf(hash); ; place = table.after(place)) {
      const slot = table.slotAt(place)
      if (slot === noSlot || (table.hashAt(place) === hash && this.#rows.startsWith(slot, key))) return slot
    }
  }

  /** Adds a slot whose row has a key that is not here yet. */
  add(key: string, slot: number): void {
    const hash = hashOf(key)
    this.#tableOf(hash).add(hash, slot)
    this.#size += 1
  }

  /** Takes a slot out that is there under this key. */
  delete(key: string, slot: number): void {
    const hash = hashOf(key)
    this.#tableOf(hash).delete(hash, slot)
    this.#size -= 1
  }

  #tableOf(hash: number): HashTable {
    return this.#tables[hash & (tableCount - 1)] ?? new HashTable()
  }
}

/** A hash that differs in its low bits and in its high ones. */
const hashOf = (key: string): number => {
  let hash = 0
  for (let index = 0; index < keyStartLength && index < key.length; index += 1)
    hash = (Math.imul(hash, 0x01000193) ^ codeAt(key, index)) | 0
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

/** Hashes and slots in one list of numbers, each from the place on that its hash names; no more than three quarters of the places are taken. */
class HashTable {
  #entries = new Int32Array(2 * firstCapacity).fill(noSlot)
  #size = 0

  /** Where a hash is to be looked for first. */
  placeOf(hash: number): number {
    return (hash >>> tableBits) & this.#mask
  }

  after(place: number): number {
    return (place + 1) & this.#mask
  }

  hashAt(place: number): number {
    return this.#entries[2 * place] ?? 0
  }

  slotAt(place: number): number {
    return this.#entries[2 * place + 1] ?? noSlot
  }

  add(hash: number, slot: number): void {
    if ((this.#size + 1) * 4 > this.#capacity * 3) this.#resize(this.#capacity * 2)
    this.#enter(hash, slot)
    this.#size += 1
  }

  delete(hash: number, slot: number): void {
    let hole = this.placeOf(hash)
    while (this.slotAt(hole) !== slot) {
      if (this.slotAt(hole) === noSlot) return
      hole = this.after(hole)
    }
    // Those behind it that it kept from their places move up.
    for (let place = this.after(hole); this.slotAt(place) !== noSlot; place = this.after(place)) {
      const home = this.placeOf(this.hashAt(place))
      if (((place - home) & this.#mask) < ((place - hole) & this.#mask)) continue
      this.#write(hole, this.hashAt(place), this.slotAt(place))
      hole = place
    }
    this.#write(hole, 0, noSlot)
    this.#size -= 1
    if (this.#size * 8 < this.#capacity && this.#capacity > firstCapacity) this.#resize(this.#capacity / 2)
  }

  get #capacity(): number {
    return this.#entries.length / 2
  }

  get #mask(): number {
    return this.#capacity - 1
  }

  #enter(hash: number, slot: number): void {
    let place = this.placeOf(hash)
    while (this.slotAt(place) !== noSlot) place = this.after(place)
    this.#write(place, hash, slot)
  }

  #write(place: number, hash: number, slot: number): void {
    this.#entries[2 * place] = hash
    this.#entries[2 * place + 1] = slot
  }

  #resize(capacity: number): void {
    const before = this.#entries
    this.#entries = new Int32Array(2 * capacity).fill(noSlot)
    for (let at = 0; at < before.length; at += 2) {
      const slot = before[at + 1] ?? noSlot
      if (slot !== noSlot) this.#enter(before[at] ?? 0, slot)
    }
  }
}
