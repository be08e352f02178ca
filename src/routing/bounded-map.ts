/**
 * A map that forgets what was set longest ago beyond `maxEntries`, an eighth of it at a time. Unlike an LRU table it costs nothing while it
 * is empty and little while entries come and go.
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #maxEntries: number

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

  /** An eighth at once: to find the first entry, the table passes every one that was deleted before it. */
  #forgetOldest(): void {
    let left = Math.max(1, this.#maxEntries >> 3)
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      left -= 1
      if (left === 0) return
    }
  }
}
