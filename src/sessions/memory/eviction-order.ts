import TinyQueue from 'tinyqueue'

/** An entry's place in the order. Whoever has the entry keeps it: a table of them would be one more that every use has to look into. */
export interface EvictionPlace<K> {
  readonly key: K
  readonly group: number
  bytes: number
  /** Where the entry stands in its group's heap. */
  atMs: number
  order: number
  /** When it was really used last: later than `atMs` once it was used again. */
  usedMs: number
  usedOrder: number
  /** It may still be in the heap. */
  isGone: boolean
}

interface Group<K> {
  heap: TinyQueue<EvictionPlace<K>>
  live: number
}

/** Below this many entries a heap is not worth tidying. */
const smallHeap = 64

const byUse = (a: EvictionPlace<unknown>, b: EvictionPlace<unknown>): number => a.atMs - b.atMs || a.order - b.order

/**
 * Which entry goes first when room is needed: least recently used, weighted by size. Entries are grouped by size in powers of two; of the
 * least recently used entry of every group, the one goes for which time since its last use times bytes is greatest. So what goes is within a
 * factor of two of the greatest such product of all, and finding it is O(log n).
 */
export class EvictionOrder<K> {
  readonly #groups = new Map<number, Group<K>>()
  #bytes = 0
  #uses = 0

  get size(): number {
    return [...this.#groups.values()].reduce((sum, { live }) => sum + live, 0)
  }

  /** Of all entries together. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Notes the use of the entry that has the place, or adds one without; returns its place from now on. `usedMs` may lie ahead: until then the
   * entry is in use, and no victim. Entries used in the same millisecond keep their order.
   */
  put(
    place: EvictionPlace<K> | undefined,
    key: K,
    { bytes, usedMs }: { readonly bytes: number; readonly usedMs: number },
  ): EvictionPlace<K> {
    const group = groupOf(bytes)
    this.#uses += 1
    if (place !== undefined && !place.isGone && place.group === group && usedMs >= place.atMs) {
      this.#bytes += bytes - place.bytes
      place.bytes = bytes
      place.usedMs = usedMs
      place.usedOrder = this.#uses
      return place
    }
    this.delete(place)
    const order = this.#uses
    const added = { key, group, bytes, atMs: usedMs, order, usedMs, usedOrder: order, isGone: false }
    const joined = this.#groupAt(group)
    joined.heap.push(added)
    joined.live += 1
    this.#bytes += bytes
    return added
  }

  delete(place: EvictionPlace<K> | undefined): void {
    if (place === undefined || place.isGone) return
    place.isGone = true
    this.#bytes -= place.bytes
    const group = this.#groupAt(place.group)
    group.live -= 1
    this.#tidy(place.group, group)
  }

  /** The entry that has to go first; undefined: all are in use, or there is none. */
  victim(nowMs: number): K | undefined {
    let victim: EvictionPlace<K> | undefined
    for (const group of this.#groups.values()) {
      const oldest = this.#oldest(group, nowMs)
      if (oldest !== undefined && (victim === undefined || goesBefore(oldest, victim, nowMs))) victim = oldest
    }
    return victim?.key
  }

  #oldest({ heap }: Group<K>, nowMs: number): EvictionPlace<K> | undefined {
    for (let top = heap.peek(); top !== undefined && top.atMs <= nowMs; top = heap.peek()) {
      if (!top.isGone && top.usedOrder === top.order) return top
      heap.pop()
      if (top.isGone) continue
      top.atMs = top.usedMs
      top.order = top.usedOrder
      heap.push(top)
    }
    return undefined
  }

  #groupAt(number: number): Group<K> {
    const known = this.#groups.get(number)
    if (known !== undefined) return known
    const group: Group<K> = { heap: new TinyQueue<EvictionPlace<K>>([], byUse), live: 0 }
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
      group.heap.data.filter(({ isGone }) => !isGone),
      byUse,
    )
  }
}

const goesBefore = (a: EvictionPlace<unknown>, b: EvictionPlace<unknown>, nowMs: number): boolean => {
  const [scoreA, scoreB] = [(nowMs - a.atMs) * a.bytes, (nowMs - b.atMs) * b.bytes]
  return scoreA > scoreB || (scoreA === scoreB && byUse(a, b) < 0)
}

const groupOf = (bytes: number): number => Math.floor(Math.log2(Math.max(1, bytes)))
