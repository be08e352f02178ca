import TinyQueue from 'tinyqueue'

/** Something that ends at a deadline, which may move. */
export interface Ending {
  endsMs: number
  /** It has ended otherwise, and the queue may forget it. */
  hasEnded: boolean
}

interface Place<T> {
  readonly dueMs: number
  readonly thing: T
}

/** Places of things that have ended are dropped when they are more than those of others, and more than this. */
const sparePlaces = 1_000

/**
 * Ends things when their deadline has passed. Each has one place in the queue: a later deadline is seen when the earlier
 * one is due, so that to put it off costs nothing.
 */
export class Deadlines<T extends Ending> {
  #queue = queueOf<T>([])
  #ended = 0
  readonly #end: (thing: T) => void

  constructor(end: (thing: T) => void) {
    this.#end = end
  }

  /** A thing that is new, or ends sooner than before. */
  add(thing: T): void {
    this.#queue.push({ dueMs: thing.endsMs, thing })
  }

  /** Its place is forgotten some time later. */
  ended(thing: T): void {
    thing.hasEnded = true
    this.#ended += 1
    if (this.#ended > Math.max(sparePlaces, this.#queue.length / 2)) {
      this.#queue = queueOf(this.#queue.data.filter((place) => !place.thing.hasEnded))
      this.#ended = 0
    }
  }

  endUntil(nowMs: number): void {
    for (let next = this.#queue.peek(); next !== undefined && next.dueMs <= nowMs; next = this.#queue.peek()) {
      this.#queue.pop()
      const { thing } = next
      if (thing.hasEnded) this.#ended = Math.max(0, this.#ended - 1)
      else if (thing.endsMs <= nowMs) this.#end(thing)
      else this.#queue.push({ dueMs: thing.endsMs, thing })
    }
  }
}

const queueOf = <T>(places: Place<T>[]) => new TinyQueue<Place<T>>(places, (a, b) => a.dueMs - b.dueMs)
