import TinyQueue from 'tinyqueue'

/** Things that are to happen at a time, in the order of time; those of one time in the order in which they were added. */
export interface EventQueue {
  /** Undefined: nothing is to come. */
  readonly nextMs: number | undefined
  add(timeMs: number, happen: () => void): void
  /** Takes out what comes first and lets it happen. */
  step(): void
}

interface Entry {
  readonly timeMs: number
  readonly order: number
  readonly happen: () => void
}

/** `onTime` sets the clock before each event. */
export const createEventQueue = (onTime: (timeMs: number) => void): EventQueue => {
  const queue = new TinyQueue<Entry>([], (a, b) => a.timeMs - b.timeMs || a.order - b.order)
  let added = 0
  return {
    get nextMs() {
      return queue.peek()?.timeMs
    },
    add: (timeMs, happen) => {
      added += 1
      queue.push({ timeMs, order: added, happen })
    },
    step: () => {
      const entry = queue.pop()
      if (entry === undefined) return
      onTime(entry.timeMs)
      entry.happen()
    },
  }
}
