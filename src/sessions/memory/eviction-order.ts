import { SlotHeap } from './slot-heap.ts'
import { noSlot, type SlotRows } from './slot-rows.ts'

/** What the order notes in an entry's row: numbers from its first column on. */
const columns = { usedMs: 0, use: 1, bytes: 2, group: 3, place: 4 } as const

/** How many columns of every row the order takes. */
export const evictionColumns = Object.keys(columns).length

/**
 * Which slot goes first when room is needed: least recently used, weighted by size. Entries are grouped by size in powers of two; of the
 * least recently used entry of every group, the one goes for which time since its last use times bytes is greatest. So what goes is within a
 * factor of two of the greatest such product of all, and finding it is O(log n). A use is noted in the entry's own row, next to what a turn reads
 * anyway: its group's heap hears of it when the entry comes up there.
 */
export class EvictionOrder {
  readonly #rows: SlotRows
  readonly #first: number
  /** By size: of the entries with 2^n bytes up to twice that, the number n. */
  readonly #groups = new Map<number, SlotHeap>()
  #bytes = 0
  #uses = 0

  constructor(rows: SlotRows, firstColumn: number) {
    this.#rows = rows
    this.#first = firstColumn
  }

  get size(): number {
    return [...this.#groups.values()].reduce((sum, { size }) => sum + size, 0)
  }

  /** Of all entries together. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Notes the use of an entry, or adds it. `usedMs` may lie ahead: until then the entry is in use, and no victim. Entries used in the same
   * millisecond keep their order.
   */
  put(slot: number, { bytes, usedMs }: { readonly bytes: number; readonly usedMs: number }): void {
    const group = groupOf(bytes)
    const heap = this.#heapOf(slot)
    const isKept = heap !== undefined && this.#read(slot, columns.group) === group + 1
    if (!isKept) this.delete(slot)
    this.#uses += 1
    this.#bytes += bytes - this.#bytesOf(slot)
    // Where it stands in the heap is never later than it was used.
    const isLater = isKept && (usedMs >= this.#read(slot, columns.usedMs) || usedMs >= heap.timeOf(slot))
    this.#write(slot, columns.usedMs, usedMs)
    this.#write(slot, columns.use, this.#uses)
    this.#write(slot, columns.bytes, bytes)
    this.#write(slot, columns.group, group + 1)
    if (!isLater) this.#groupAt(group).put(slot, usedMs, this.#uses)
  }

  /** Takes an entry out, whether it is there or not. */
  delete(slot: number): void {
    const heap = this.#heapOf(slot)
    if (heap === undefined) return
    heap.delete(slot)
    if (heap.size === 0) this.#groups.delete(this.#read(slot, columns.group) - 1)
    this.#bytes -= this.#bytesOf(slot)
    this.#write(slot, columns.bytes, 0)
    this.#write(slot, columns.group, 0)
  }

  /** The entry that has to go first; `noSlot`: all are in use, or there is none. */
  victim(nowMs: number): number {
    let victim = noSlot
    for (const heap of this.#groups.values()) {
      const oldest = this.#oldest(heap, nowMs)
      if (oldest !== noSlot && (victim === noSlot || this.#goesBefore(oldest, victim, nowMs))) victim = oldest
    }
    return victim
  }

  #oldest(heap: SlotHeap, nowMs: number): number {
    for (let slot = heap.first; slot !== noSlot && heap.timeOf(slot) <= nowMs; slot = heap.first) {
      const use = this.#read(slot, columns.use)
      if (use === heap.orderOf(slot)) return slot
      heap.put(slot, this.#read(slot, columns.usedMs), use)
    }
    return noSlot
  }

  #goesBefore(one: number, other: number, nowMs: number): boolean {
    const [score, otherScore] = [this.#score(one, nowMs), this.#score(other, nowMs)]
    return score > otherScore || (score === otherScore && this.#wasUsedBefore(one, other))
  }

  #score(slot: number, nowMs: number): number {
    return (nowMs - this.#read(slot, columns.usedMs)) * this.#bytesOf(slot)
  }

  #wasUsedBefore(one: number, other: number): boolean {
    const [usedMs, otherMs] = [this.#read(one, columns.usedMs), this.#read(other, columns.usedMs)]
    return usedMs < otherMs || (usedMs === otherMs && this.#read(one, columns.use) < this.#read(other, columns.use))
  }

  /** 0 for what is not here. */
  #bytesOf(slot: number): number {
    return this.#read(slot, columns.bytes)
  }

  /** Undefined for what is not here. */
  #heapOf(slot: number): SlotHeap | undefined {
    const group = this.#read(slot, columns.group)
    return group === 0 ? undefined : this.#groups.get(group - 1)
  }

  #groupAt(number: number): SlotHeap {
    const known = this.#groups.get(number)
    if (known !== undefined) return known
    const group = new SlotHeap({ rows: this.#rows, column: this.#first + columns.place, isOrdered: true })
    this.#groups.set(number, group)
    return group
  }

  #read(slot: number, column: number): number {
    return this.#rows.number(slot, this.#first + column)
  }

  #write(slot: number, column: number, value: number): void {
    this.#rows.setNumber(slot, this.#first + column, value)
  }
}

const groupOf = (bytes: number): number => Math.floor(Math.log2(Math.max(1, bytes)))
