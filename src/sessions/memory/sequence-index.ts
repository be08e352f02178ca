import { noSlot } from './slot-rows.ts'

/** Fewer places than this are not worth closing the gaps. */
const smallIndex = 16

/**
 * Slots in the order of a growing sequence number, walked from the newest. Adding, removing and finding a place are O(log n) or better:
 * a removed slot leaves a gap, and the gaps are closed when they are half of all.
 */
export class SequenceIndex {
  #sequences: number[] = []
  #slots: number[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** `sequence` is greater than every one before. */
  add(sequence: number, slot: number): void {
    this.#sequences.push(sequence)
    this.#slots.push(slot)
    this.#size += 1
  }

  remove(sequence: number): void {
    const place = this.#countBelow(sequence)
    if (this.#sequences[place] !== sequence || this.#slots[place] === noSlot) return
    this.#slots[place] = noSlot
    this.#size -= 1
    if (this.#slots.length >= smallIndex && this.#size * 2 <= this.#slots.length) this.#closeGaps()
  }

  /** Newest first, starting below `sequence`, whether or not that one is still here. Slots must not be removed while walking. */
  *newestBelow(sequence: number): Generator<number> {
    for (let place = this.#countBelow(sequence) - 1; place >= 0; place--) {
      const slot = this.#slots[place] ?? noSlot
      if (slot !== noSlot) yield slot
    }
  }

  #closeGaps(): void {
    const { length } = this.#slots
    let kept = 0
    for (let place = 0; place < length; place += 1) {
      const slot = this.#slots[place] ?? noSlot
      if (slot === noSlot) continue
      this.#slots[kept] = slot
      this.#sequences[kept] = this.#sequences[place] ?? 0
      kept += 1
    }
    this.#slots.length = kept
    this.#sequences.length = kept
  }

  #countBelow(sequence: number): number {
    let low = 0
    let high = this.#sequences.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#sequences[middle] ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}
