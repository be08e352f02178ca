import { setImmediate as settled } from 'node:timers/promises'
import TinyQueue from 'tinyqueue'

/** Events happen in the order of time; those of one time in the order in which they were added. */
interface SimulationEvent {
  readonly timeMs: number
  readonly order: number
  readonly happen: () => void
}

export type VirtualTime = ReturnType<typeof createVirtualTime>

/** A clock that jumps from event to event. */
export const createVirtualTime = () => {
  let nowMs = 0
  let scheduled = 0
  const events = new TinyQueue<SimulationEvent>([], (a, b) => a.timeMs - b.timeMs || a.order - b.order)

  const at = (timeMs: number, happen: () => void): void => {
    scheduled += 1
    events.push({ timeMs, order: scheduled, happen })
  }

  const happenNext = (untilMs: number): boolean => {
    const next = events.peek()
    if (next === undefined || next.timeMs > untilMs) return false
    events.pop()
    nowMs = next.timeMs
    next.happen()
    return true
  }

  return {
    nowMs: (): number => nowMs,
    at,
    /** Lets happen what happens until then. */
    runUntil: (timeMs: number): void => {
      while (happenNext(timeMs));
      if (timeMs < Number.POSITIVE_INFINITY) nowMs = timeMs
    },
    /** Lets everything happen, and after each event all that waited for it. */
    runAll: async (): Promise<void> => {
      do await settled()
      while (happenNext(Number.POSITIVE_INFINITY))
    },
    sleep: (milliseconds: number): Promise<void> => new Promise((resolve) => at(nowMs + milliseconds, resolve)),
    /** Calls back once. The result prevents that. */
    startTimer: (callback: () => void, delayMs: number): (() => void) => {
      let isStopped = false
      at(nowMs + delayMs, () => void (isStopped || callback()))
      return () => {
        isStopped = true
      }
    },
  }
}
