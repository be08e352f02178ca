import TinyQueue from 'tinyqueue'

interface Entry<K> {
  readonly key: K
  readonly group: number
  bytes: number
  /** Where the entry stands in its group's heap. */
  readonly atMs: number
  readonly order: number
  /** When it was really used last: later than `atMs` once it was used again. */
  usedMs: number
  usedOrder: number
}

interface Group<K> {
  heap: TinyQueue<Entry<K>>
  live: number
}

/** Below this many entries a heap is not worth tidying. */
const smallHeap = 64

const byUse = (a: Entry<unknown>, b: Entry<unknown>): number => a.atMs - b.atMs || a.order - b.order

/**
 * Which entry goes first when room is needed: least recently used, weighted by size. Entries are grouped by size in powers of two; of the
 * least recently used entry of every group, the one goes for which time since its last use times bytes is greatest. So what goes is within a
 * factor of two of the greatest such product of all, and finding it is O(log n).
 */
export class EvictionOrder<K> {
  readonly #entries = new Map<K, Entry<K>>()
  readonly #groups = new Map<number, Group<K>>()
  #bytes = 0
  #uses = 0

  get size(): number {
    return this.#entries.size
  }

  /** Of all entries together. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds an entry, or notes its use. `usedMs` may lie ahead: until then the entry is in use, and no victim. Entries used in the same
   * millisecond keep their order.
   */
  set(key: K, { bytes, usedMs }: { readonly bytes: number; readonly usedMs: number }): void {
    const known = this.#entries.get(key)
    const group = groupOf(bytes)
    this.#uses += 1
    if (known !== undefined && known.group === group && usedMs >= known.atMs) {
      this.#bytes += bytes - known.bytes
      known.bytes = bytes
      known.usedMs = usedMs
      known.usedOrder = this.#uses
      return
    }
    this.delete(key)
    this.#bytes += bytes
    this.#push({ key, group, bytes, atMs: usedMs, order: this.#uses, usedMs, usedOrder: this.#uses })
    this.#groupAt(group).live += 1
  }

  delete(key: K): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
    const group = this.#groupAt(entry.group)
    group.live -= 1
    this.#tidy(entry.group, group)
  }

  /** The entry that has to go first; undefined: all are in use, or there is none. */
  victim(nowMs: number): K | undefined {
    let victim: Entry<K> | undefined
    for (const group of this.#groups.values()) {
      const oldest = this.#oldest(group, nowMs)
      if (oldest !== undefined && (victim === undefined || goesBefore(oldest, victim, nowMs))) victim = oldest
    }
    return victim?.key
  }

  #oldest({ heap }: Group<K>, nowMs: number): Entry<K> | undefined {
    for (let top = heap.peek(); top !== undefined && top.atMs <= nowMs; top = heap.peek()) {
      if (this.#entries.get(top.key) !== top) heap.pop()
      else if (top.usedOrder === top.order) return top
      else {
        heap.pop()
        this.#push({ ...top, atMs: top.usedMs, order: top.usedOrder })
      }
    }
    return undefined
  }

  #push(entry: Entry<K>): void {
    this.#entries.set(entry.key, entry)
    this.#groupAt(entry.group).heap.push(entry)
  }

  #groupAt(number: number): Group<K> {
    const known = this.#groups.get(number)
    if (known !== undefined) return known
    const group: Group<K> = { heap: new TinyQueue<Entry<K>>([], byUse), live: 0 }
    this.#groups.set(number, group)
    return group
  }

  /** Entries that went, or moved to another group, stay in the heap until they come up or outnumber the others. */
  #tidy(number: number, group: Group<K>): void {
    if (group.live === 0) {
      this.#groups.delete(number)
      return
    }
    if (group.heap.length < smallHeap || group.heap.length <= 2 * group.live) return
    group.heap = new TinyQueue(
      group.heap.data.filter((entry) => this.#entries.get(entry.key) === entry),
      byUse,
    )
  }
}

const goesBefore = (a: Entry<unknown>, b: Entry<unknown>, nowMs: number): boolean => {
  const [scoreA, scoreB] = [(nowMs - a.atMs) * a.bytes, (nowMs - b.atMs) * b.bytes]
  return scoreA > scoreB || (scoreA === scoreB && byUse(a, b) < 0)
}

const groupOf = (bytes: number): number => Math.floor(Math.log2(Math.max(1, bytes)))
