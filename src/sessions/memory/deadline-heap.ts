import TinyQueue from 'tinyqueue'
import { hashOfId, SlotMap } from '../../collections/slot-map.ts'

interface Entry<K> {
  readonly key: K
  /** Where the entry stands in the heap. */
  atMs: number
  /** When it is really due: later than `atMs` once the deadline was moved back. */
  dueMs: number
}

/** Below this many entries the heap is not worth tidying. */
const smallHeap = 64

/**
 * Keys by deadline. Moving a deadline back costs nothing until its old time comes; moving it forward adds an entry and leaves the old one
 * to be passed over. Every operation is O(log n), and stale entries never outnumber the live ones for long.
 */
export class DeadlineHeap<K extends string> {
  readonly #current = new SlotMap<K, Entry<K>>({ hashOf: hashOfId })
  #queue = new TinyQueue<Entry<K>>([], (a, b) => a.atMs - b.atMs)

  /** Sets or moves a key's deadline. */
  set(key: K, dueMs: number): void {
    const known = this.#current.get(key)
    if (known !== undefined && dueMs >= known.atMs) {
      known.dueMs = dueMs
      return
    }
    const entry: Entry<K> = { key, atMs: dueMs, dueMs }
    this.#current.set(key, entry)
    this.#queue.push(entry)
    this.#tidy()
  }

  delete(key: K): void {
    this.#current.delete(key)
    this.#tidy()
  }

  get size(): number {
    return this.#current.size
  }

  /** Takes out a key whose deadline is not after `nowMs`; undefined: there is none. The earliest goes first. */
  takeDue(nowMs: number): K | undefined {
    for (let top = this.#queue.peek(); top !== undefined && top.atMs <= nowMs; top = this.#queue.peek()) {
      this.#queue.pop()
      if (this.#current.get(top.key) !== top) continue
      this.#current.delete(top.key)
      if (top.dueMs === top.atMs) return top.key
      this.set(top.key, top.dueMs)
    }
    return undefined
  }

  #tidy(): void {
    if (this.#queue.length < smallHeap || this.#queue.length <= 2 * this.#current.size) return
    const entries: Entry<K>[] = []
    this.#current.forEach((entry) => {
      entry.atMs = entry.dueMs
      entries.push(entry)
    })
    this.#queue = new TinyQueue<Entry<K>>(entries, (a, b) => a.atMs - b.atMs)
  }
}
