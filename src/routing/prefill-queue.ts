/** Predicted work of one turn. */
interface QueuedWork {
  readonly turnId: string
  readonly workMs: number
}

/** Above this, the first piece of work counts as done. */
const maxWorks = 65_536

/**
 * The prefill work of one pod, first in, first out. Prefill completion is not reported; predicted work drains with time and is corrected
 * when the turn ends. Times come from a monotonic clock.
 */
export class PrefillQueue {
  readonly #works: QueuedWork[] = []
  /** When the first piece of work started. */
  #startedMs = 0
  #totalMs = 0

  /** Milliseconds until all work is done. */
  remainingMs(nowMs: number): number {
    this.#drain(nowMs)
    return Math.max(0, this.#startedMs + this.#totalMs - nowMs)
  }

  add(turnId: string, workMs: number, nowMs: number): void {
    this.#drain(nowMs)
    if (this.#works.length >= maxWorks) this.#startedMs += this.#takeFirst()
    if (this.#works.length === 0) this.#startedMs = nowMs
    this.#works.push({ turnId, workMs })
    this.#totalMs += workMs
  }

  /** The turn's work is done, and so is all work before it. */
  done(turnId: string, nowMs: number): void {
    this.#drain(nowMs)
    const index = this.#indexOf(turnId)
    if (index < 0) return
    for (let count = 0; count <= index; count += 1) this.#takeFirst()
    this.#startedMs = nowMs
  }

  /** The turn's work will not be done. */
  remove(turnId: string, nowMs: number): void {
    this.#drain(nowMs)
    const index = this.#indexOf(turnId)
    if (index === 0) {
      this.#takeFirst()
      this.#startedMs = nowMs
    } else if (index > 0) {
      const [removed] = this.#works.splice(index, 1)
      this.#totalMs -= removed?.workMs ?? 0
    }
  }

  /** From the end, since most work that changes was added last. */
  #indexOf(turnId: string): number {
    return this.#works.findLastIndex((work) => work.turnId === turnId)
  }

  #drain(nowMs: number): void {
    for (let first = this.#works[0]; first !== undefined; first = this.#works[0]) {
      if (this.#startedMs + first.workMs > nowMs) return
      this.#startedMs += this.#takeFirst()
    }
  }

  #takeFirst(): number {
    const workMs = this.#works.shift()?.workMs ?? 0
    // Not the difference when the queue is empty: rounding errors would add up.
    this.#totalMs = this.#works.length === 0 ? 0 : this.#totalMs - workMs
    return workMs
  }
}
