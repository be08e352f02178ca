/**
 * A map that forgets what was set longest ago beyond `maxEntries`. Unlike an LRU table it costs nothing while it is empty and little while
 * entries come and go.
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #maxEntries: number
  /** Goes on where it was: one that began anew would pass every entry that was deleted since the table was last made smaller. */
  #oldestFirst = this.#entries.keys()

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.#maxEntries) this.#forgetOldest()
  }

  delete(key: K): void {
    this.#entries.delete(key)
  }

  #forgetOldest(): void {
    let oldest = this.#oldestFirst.next()
    if (oldest.done === true) {
      this.#oldestFirst = this.#entries.keys()
      oldest = this.#oldestFirst.next()
    }
    if (oldest.done !== true) this.#entries.delete(oldest.value)
  }
}
