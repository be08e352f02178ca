import { maxTurnsPerPod } from './max-turns-per-pod.ts'

/** A piece of work in a queue. */
export interface QueuedWork {
  /** What it still takes, as predicted. */
  workMs: number
  /** Predicted not to be done yet. */
  isPending: boolean
}

/** So many places of work that is done are kept at the front before the rest moves up. */
const maxEmptyPlaces = 64

/**
 * Work that is done one piece after the other, in the order of arrival, and runs down by the clock. Whatever is told costs the same for a long queue
 * as for a short one, except work that leaves from far ahead of its end.
 */
export class WorkQueue {
  #pending: QueuedWork[] = []
  #first = 0
  /** When the first pending piece was begun. */
  #begunMs = 0
  #freeMs = 0

  /** When all of it will be done. */
  get freeMs(): number {
    return this.#freeMs
  }

  /** Adds a piece behind all others. Of too many, the first counts as done. */
  add(work: QueuedWork, nowMs: number): void {
    this.#runDown(nowMs)
    if (this.#isEmpty) {
      this.#begunMs = nowMs
      this.#freeMs = nowMs
    }
    if (this.#pending.length - this.#first >= maxTurnsPerPod) this.#begunMs += this.#takeFirst()
    this.#pending.push(work)
    this.#freeMs += work.workMs
  }

  /** The last piece will take another time, counted from now on. False: it is not the last one, and nothing has changed. */
  resizedLast(work: QueuedWork, workMs: number, nowMs: number): boolean {
    this.#runDown(nowMs)
    const last = this.#pending.length - 1
    if (!work.isPending || this.#pending[last] !== work) return false
    if (this.#first === last) {
      this.#begunMs = nowMs
      this.#freeMs = nowMs + workMs
    } else this.#freeMs += workMs - work.workMs
    work.workMs = workMs
    return true
  }

  /** A piece is done, and with it everything before it. */
  done(work: QueuedWork, nowMs: number): void {
    this.#runDown(nowMs)
    if (!work.isPending) return
    let doneMs = this.#begunMs
    while (work.isPending) doneMs += this.#takeFirst()
    this.#freeMs -= doneMs - nowMs
    this.#begunMs = nowMs
  }

  /** A piece is given up: what is left of it goes, and nothing else. */
  abandoned(work: QueuedWork, nowMs: number): void {
    this.#runDown(nowMs)
    if (!work.isPending) return
    // From the end, since most work that is given up has only just come.
    let doneMs = this.#freeMs
    for (let at = this.#pending.length - 1; at >= this.#first; at--) {
      const other = this.#pending[at]
      if (other === undefined || other === work) break
      doneMs -= other.workMs
    }
    const gainMs = Math.min(Math.max(0, doneMs - nowMs), work.workMs)
    work.workMs -= gainMs
    this.#freeMs -= gainMs
    if (work.workMs > 0 || work !== this.#pending.at(-1)) return
    work.isPending = false
    this.#pending.pop()
  }

  get #isEmpty(): boolean {
    return this.#first === this.#pending.length
  }

  #runDown(nowMs: number): void {
    for (let next = this.#pending[this.#first]; next !== undefined; next = this.#pending[this.#first]) {
      if (this.#begunMs + next.workMs > nowMs) return
      this.#begunMs += this.#takeFirst()
    }
  }

  #takeFirst(): number {
    const work = this.#pending[this.#first]
    if (work === undefined) return 0
    work.isPending = false
    this.#first += 1
    if (this.#first > maxEmptyPlaces && this.#first * 2 > this.#pending.length) {
      this.#pending = this.#pending.slice(this.#first)
      this.#first = 0
    }
    return work.workMs
  }
}
