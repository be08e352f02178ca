import TinyQueue from 'tinyqueue'

interface Entry<T> {
  readonly item: T
  readonly atMs: number
}

/** State that a deadline queue keeps in its items. */
export interface Due<T> {
  dueMs: number
  /** The item's current entry; undefined while it is not queued. The queue skips every other entry of the item. */
  entry: Entry<T> | undefined
}

/** A shorter queue is not rebuilt: skipped entries cost nothing there. */
const smallQueue = 64

/** Items by deadline. A later deadline is entered when the old one passes; an earlier one leaves an entry to skip. */
export class DeadlineQueue<T extends Due<T>> {
  #queue = new TinyQueue<Entry<T>>([], (a, b) => a.atMs - b.atMs)
  #size = 0

  set(item: T, dueMs: number): void {
    item.dueMs = dueMs
    if (item.entry !== undefined && item.entry.atMs <= dueMs) return
    if (item.entry === undefined) this.#size += 1
    item.entry = { item, atMs: dueMs }
    this.#queue.push(item.entry)
    this.#tidy()
  }

  delete(item: T): void {
    if (item.entry === undefined) return
    item.entry = undefined
    this.#size -= 1
    this.#tidy()
  }

  /** The item whose deadline is first, if it has passed. */
  firstDue(nowMs: number): T | undefined {
    for (let top = this.#queue.peek(); top !== undefined && top.atMs <= nowMs; top = this.#queue.peek()) {
      const { item } = top
      if (item.entry === top && item.dueMs <= nowMs) return item
      this.#queue.pop()
      if (item.entry !== top) continue
      item.entry = { item, atMs: item.dueMs }
      this.#queue.push(item.entry)
    }
    return undefined
  }

  #tidy(): void {
    if (this.#queue.length < smallQueue || this.#queue.length <= 2 * this.#size) return
    const live = this.#queue.data.filter((entry) => entry.item.entry === entry)
    this.#queue = new TinyQueue<Entry<T>>(live, (a, b) => a.atMs - b.atMs)
  }
}
