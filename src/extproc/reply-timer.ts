import type { Phase, Reply } from './messages.ts'

/** What the timers of all streams have in common. */
export interface ReplyTiming {
  /** Monotonic clock, milliseconds. */
  readonly now: () => number
  /** Is told how long each reply took. */
  readonly report: (phase: Phase, milliseconds: number) => void
}

interface Waiting {
  readonly phase: Phase
  readonly since: number
}

/** Pairs the messages of one stream with their replies, in order. */
export class ReplyTimer {
  readonly #timing: ReplyTiming
  /** Nearly always there is just one. */
  readonly #waiting: Waiting[] = []

  constructor(timing: ReplyTiming) {
    this.#timing = timing
  }

  received(phase: Phase): void {
    this.#waiting.push({ phase, since: this.#timing.now() })
  }

  sent(reply: Reply): void {
    if (reply.kind === 'extend') return
    const index = reply.kind === 'immediate' ? 0 : this.#waiting.findIndex(({ phase }) => phase === reply.phase)
    const answered = this.#waiting[index]
    if (answered === undefined) return
    if (this.#waiting.length === 1) this.#waiting.pop()
    else this.#waiting.splice(0, index + 1)
    this.#timing.report(answered.phase, this.#timing.now() - answered.since)
  }
}
