/** Above this, the first piece of work counts as done. */
const maxWorks = 65_536

/**
 * The prefill work of one pod, first in, first out. Prefill completion is not reported; predicted work drains with time
 * and is corrected when the turn ends. Times come from a monotonic clock.
 */
export class PrefillQueue {
  /** Work that is not done, in its order, with the time at which each piece is predicted to be done. */
  readonly #works: { readonly turnId: string; doneAtMs: number }[] = []

  /** Milliseconds until all work is done. */
  remainingMs(nowMs: number): number {
    this.#drain(nowMs)
    const last = this.#works.at(-1)
    return last === undefined ? 0 : last.doneAtMs - nowMs
  }

  add(turnId: string, workMs: number, nowMs: number): void {
    this.#drain(nowMs)
    if (this.#works.length >= maxWorks) this.#works.shift()
    this.#works.push({ turnId, doneAtMs: (this.#works.at(-1)?.doneAtMs ?? nowMs) + workMs })
  }

  /** The turn's work is done, and so is all work before it. */
  done(turnId: string, nowMs: number): void {
    const index = this.#indexOf(turnId, nowMs)
    if (index >= 0) this.#takeOut(0, index, nowMs)
  }

  /** The turn's work will not be done. */
  remove(turnId: string, nowMs: number): void {
    const index = this.#indexOf(turnId, nowMs)
    if (index >= 0) this.#takeOut(index, index, nowMs)
  }

  /** From the end, since most work that changes was added last. */
  #indexOf(turnId: string, nowMs: number): number {
    this.#drain(nowMs)
    return this.#works.findLastIndex((work) => work.turnId === turnId)
  }

  /** What follows is done sooner, by the time that the pieces would still have taken. */
  #takeOut(first: number, last: number, nowMs: number): void {
    const startMs = this.#works[first - 1]?.doneAtMs ?? nowMs
    const savedMs = (this.#works[last]?.doneAtMs ?? startMs) - startMs
    this.#works.splice(first, last - first + 1)
    for (const work of this.#works.slice(first)) work.doneAtMs -= savedMs
  }

  #drain(nowMs: number): void {
    while ((this.#works[0]?.doneAtMs ?? Number.POSITIVE_INFINITY) <= nowMs) this.#works.shift()
  }
}
