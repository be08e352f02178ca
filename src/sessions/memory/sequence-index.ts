interface Slot<T> {
  readonly sequence: number
  value: T | undefined
}

/** Fewer slots than this are not worth closing the gaps. */
const smallIndex = 16

/**
 * Values in the order of a growing sequence number, walked from the newest. Adding, removing and finding a place are O(log n) or better:
 * a removed value leaves a gap, and the gaps are closed when they are half of all.
 */
export class SequenceIndex<T> {
  #slots: Slot<T>[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** `sequence` is greater than every one before. */
  add(sequence: number, value: T): void {
    this.#slots.push({ sequence, value })
    this.#size += 1
  }

  remove(sequence: number): void {
    const slot = this.#slots[this.#countBelow(sequence)]
    if (slot?.sequence !== sequence || slot.value === undefined) return
    slot.value = undefined
    this.#size -= 1
    if (this.#slots.length >= smallIndex && this.#size * 2 <= this.#slots.length) {
      this.#slots = this.#slots.filter(({ value }) => value !== undefined)
    }
  }

  /** Newest first, starting below `sequence`, whether or not that one is still here. Values must not be removed while walking. */
  *newestBelow(sequence: number): Generator<T> {
    for (let index = this.#countBelow(sequence) - 1; index >= 0; index--) {
      const value = this.#slots[index]?.value
      if (value !== undefined) yield value
    }
  }

  #countBelow(sequence: number): number {
    let low = 0
    let high = this.#slots.length
    while (low < high) {
      const middle = (low + high) >> 1
      const slot = this.#slots[middle]
      if (slot !== undefined && slot.sequence < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}
