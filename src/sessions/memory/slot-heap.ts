import { noSlot, type SlotRows } from './slot-rows.ts'

const firstCapacity = 16

export interface SlotHeapOptions {
  readonly rows: SlotRows
  /** Of every row: one more than the slot's place, 0 when it is not in the heap. Several heaps can share it if a slot is in one of them at a time. */
  readonly column: number
  /** Whether slots of one time have an order among them. Default: no. */
  readonly isOrdered?: boolean
}

/**
 * Slots by time, the earliest first; of one time by `order`. Adding, moving and removing are O(log n). Where a slot stands in the heap is noted in its
 * row, so that it is found there.
 */
export class SlotHeap {
  readonly #rows: SlotRows
  readonly #column: number
  #times = new Float64Array(firstCapacity)
  /** Empty where slots of one time have no order. */
  #orders: Float64Array
  #slots = new Int32Array(firstCapacity)
  #size = 0

  constructor({ rows, column, isOrdered = false }: SlotHeapOptions) {
    this.#rows = rows
    this.#column = column
    this.#orders = new Float64Array(isOrdered ? firstCapacity : 0)
  }

  get size(): number {
    return this.#size
  }

  /** The slot with the earliest time; `noSlot` when there is none. */
  get first(): number {
    return this.#size === 0 ? noSlot : this.#slotAt(0)
  }

  has(slot: number): boolean {
    return this.#placeOf(slot) >= 0
  }

  /** The time of a slot that is in the heap. */
  timeOf(slot: number): number {
    return this.#times[this.#placeOf(slot)] ?? 0
  }

  orderOf(slot: number): number {
    return this.#orders[this.#placeOf(slot)] ?? 0
  }

  /** Adds a slot, or moves it. */
  put(slot: number, time: number, order = 0): void {
    let place = this.#placeOf(slot)
    if (place < 0) {
      if (this.#size === this.#slots.length) this.#resize(this.#size * 2)
      place = this.#size
      this.#size += 1
    }
    this.#settle(place, slot, time, order)
  }

  /** Takes a slot out, whether it is there or not. */
  delete(slot: number): void {
    const place = this.#placeOf(slot)
    if (place < 0) return
    this.#rows.setNumber(slot, this.#column, 0)
    this.#size -= 1
    const last = this.#size
    if (place < last) this.#settle(place, this.#slotAt(last), this.#times[last] ?? 0, this.#orders[last] ?? 0)
    if (this.#size * 4 < this.#slots.length && this.#slots.length > firstCapacity) this.#resize(this.#slots.length / 2)
  }

  #placeOf(slot: number): number {
    return this.#rows.number(slot, this.#column) - 1
  }

  #slotAt(place: number): number {
    return this.#slots[place] ?? noSlot
  }

  /** Below zero: ahead of what stands at a place; above: behind it. */
  #compare(time: number, order: number, place: number): number {
    return time - (this.#times[place] ?? 0) || order - (this.#orders[place] ?? 0)
  }

  /** Finds the place for a slot, from one that may be overwritten. */
  #settle(from: number, slot: number, time: number, order: number): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (this.#compare(time, order, parent) >= 0) break
      this.#move(parent, place)
      place = parent
    }
    for (let child = this.#earlierChild(place); child < this.#size; child = this.#earlierChild(place)) {
      if (this.#compare(time, order, child) <= 0) break
      this.#move(child, place)
      place = child
    }
    this.#write(place, slot, time, order)
  }

  /** `size` or beyond it: there is none. */
  #earlierChild(place: number): number {
    const left = place * 2 + 1
    const right = left + 1
    if (right >= this.#size) return left
    return this.#compare(this.#times[right] ?? 0, this.#orders[right] ?? 0, left) < 0 ? right : left
  }

  #move(from: number, to: number): void {
    this.#write(to, this.#slotAt(from), this.#times[from] ?? 0, this.#orders[from] ?? 0)
  }

  #write(place: number, slot: number, time: number, order: number): void {
    this.#slots[place] = slot
    this.#times[place] = time
    this.#orders[place] = order
    this.#rows.setNumber(slot, this.#column, place + 1)
  }

  #resize(capacity: number): void {
    this.#times = resized(this.#times, new Float64Array(capacity))
    if (this.#orders.length > 0) this.#orders = resized(this.#orders, new Float64Array(capacity))
    this.#slots = resized(this.#slots, new Int32Array(capacity))
  }
}

const resized = <T extends Float64Array | Int32Array>(from: T, to: T): T => {
  to.set(from.subarray(0, to.length))
  return to
}
