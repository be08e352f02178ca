import { codeAt } from './code-at.ts'

const noSlot = -1

/** Slots to begin with; a power of two, like every capacity. */
const firstCapacity = 16

/**
 * A map in the order in which entries were set, for what comes and goes with every turn. A `Map` takes a new table after so many deletions, and its
 * old one keeps hold of the new one: once one of them has outlived two collections of young garbage, every later one does, with all that was in it.
 * This one keeps its entries in slots that are used again, and makes no garbage at all.
 */
export class SlotMap<K, V> {
  readonly #hashOf: (key: K) => number
  readonly #maxEntries: number
  #keys: (K | undefined)[] = []
  #values: (V | undefined)[] = []
  /** By hash: the first slot of those that share it. */
  #heads: Int32Array = new Int32Array(0)
  /** The next slot with the same hash, and of the free ones the next free one. */
  #chain: Int32Array = new Int32Array(0)
  #before: Int32Array = new Int32Array(0)
  #after: Int32Array = new Int32Array(0)
  #free = noSlot
  #oldest = noSlot
  #newest = noSlot
  #size = 0

  /**
   * `hashOf` gives whole numbers whose low bits differ. Beyond `maxEntries` the oldest entry goes; default: no bound.
   */
  constructor(options: { readonly hashOf: (key: K) => number; readonly maxEntries?: number }) {
    this.#hashOf = options.hashOf
    this.#maxEntries = options.maxEntries ?? Number.POSITIVE_INFINITY
    this.#resize(firstCapacity)
  }

  get size(): number {
    return this.#size
  }

  get(key: K): V | undefined {
    const slot = this.#find(key)
    return slot === noSlot ? undefined : this.#values[slot]
  }

  has(key: K): boolean {
    return this.#find(key) !== noSlot
  }

  /** Sets an entry, which is the newest one then. */
  set(key: K, value: V): void {
    let slot = this.#find(key)
    if (slot === noSlot) slot = this.#add(key)
    else this.#unlink(slot)
    this.#values[slot] = value
    this.#link(slot)
    if (this.#size > this.#maxEntries) this.deleteOldest()
  }

  /** Deletes an entry, and returns its value. */
  delete(key: K): V | undefined {
    const slot = this.#find(key)
    if (slot === noSlot) return undefined
    const value = this.#values[slot]
    this.#remove(key, slot)
    return value
  }

  /** Deletes the oldest entry, and returns its value. */
  deleteOldest(): V | undefined {
    const slot = this.#oldest
    const key = slot === noSlot ? undefined : this.#keys[slot]
    if (key === undefined) return undefined
    const value = this.#values[slot]
    this.#remove(key, slot)
    return value
  }

  /** The value of the entry that was set the longest time ago. */
  get oldest(): V | undefined {
    return this.#oldest === noSlot ? undefined : this.#values[this.#oldest]
  }

  /** All values, the oldest one first. `take` must not change the map. */
  forEach(take: (value: V) => void): void {
    for (let slot = this.#oldest; slot !== noSlot; slot = this.#after[slot] ?? noSlot) {
      const value = this.#values[slot]
      if (value !== undefined) take(value)
    }
  }

  #find(key: K): number {
    let slot = this.#heads[this.#bucketOf(key)] ?? noSlot
    while (slot !== noSlot && this.#keys[slot] !== key) slot = this.#chain[slot] ?? noSlot
    return slot
  }

  #bucketOf(key: K): number {
    return this.#hashOf(key) & (this.#heads.length - 1)
  }

  #add(key: K): number {
    if (this.#free === noSlot) this.#resize(this.#keys.length * 2)
    const slot = this.#free
    this.#free = this.#chain[slot] ?? noSlot
    this.#keys[slot] = key
    this.#enter(slot, key)
    this.#size += 1
    return slot
  }

  #enter(slot: number, key: K): void {
    const bucket = this.#bucketOf(key)
    this.#chain[slot] = this.#heads[bucket] ?? noSlot
    this.#heads[bucket] = slot
  }

  #remove(key: K, slot: number): void {
    const bucket = this.#bucketOf(key)
    const rest = this.#chain[slot] ?? noSlot
    let ahead = this.#heads[bucket] ?? noSlot
    if (ahead === slot) this.#heads[bucket] = rest
    else {
      while ((this.#chain[ahead] ?? noSlot) !== slot) ahead = this.#chain[ahead] ?? noSlot
      this.#chain[ahead] = rest
    }
    this.#unlink(slot)
    this.#keys[slot] = undefined
    this.#values[slot] = undefined
    this.#chain[slot] = this.#free
    this.#free = slot
    this.#size -= 1
  }

  #link(slot: number): void {
    this.#before[slot] = this.#newest
    this.#after[slot] = noSlot
    if (this.#newest === noSlot) this.#oldest = slot
    else this.#after[this.#newest] = slot
    this.#newest = slot
  }

  #unlink(slot: number): void {
    const before = this.#before[slot] ?? noSlot
    const after = this.#after[slot] ?? noSlot
    if (before === noSlot) this.#oldest = after
    else this.#after[before] = after
    if (after === noSlot) this.#newest = before
    else this.#before[after] = before
  }

  #resize(capacity: number): void {
    const used = this.#keys.length
    this.#heads = new Int32Array(capacity).fill(noSlot)
    this.#chain = grown(this.#chain, capacity)
    this.#before = grown(this.#before, capacity)
    this.#after = grown(this.#after, capacity)
    for (let slot = 0; slot < used; slot++) {
      const key = this.#keys[slot]
      if (key !== undefined) this.#enter(slot, key)
    }
    for (let slot = capacity - 1; slot >= used; slot--) {
      this.#keys[slot] = undefined
      this.#values[slot] = undefined
      this.#chain[slot] = this.#free
      this.#free = slot
    }
  }
}

const grown = (before: Int32Array, length: number): Int32Array => {
  const after = new Int32Array(length)
  after.set(before)
  return after
}

/**
 * A hash of texts that nobody outside can choose, such as ids and digests that are made here: from their last characters, which differ. Texts that
 * clients choose could be made to collide.
 */
export const hashOfId = (id: string): number => {
  let hash = 0
  for (let index = Math.max(0, id.length - 8); index < id.length; index++)
    hash = (Math.imul(hash, 31) + codeAt(id, index)) | 0
  return hash ^ (hash >>> 15)
}
