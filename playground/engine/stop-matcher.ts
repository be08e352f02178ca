// Ends an answer at the first of the client's stop strings, also where one arrives in pieces.

/** Text to send on, and whether a stop string has ended the answer. */
export interface StopMatch {
  readonly text: string
  readonly stopped: boolean
}

/** Looks for stop strings in text that arrives in pieces. */
export interface StopMatcher {
  /** Takes a piece. Holds back what could be the beginning of a stop string. */
  push(piece: string): StopMatch
  /** What was held back, when no more text comes. */
  end(): string
}

/** Creates a matcher for one answer; `stops` are not empty strings. */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  let held = ''
  return {
    push(piece) {
      const text = held + piece
      const found = firstCompleted(text, stops)
      if (found !== undefined) {
        held = ''
        return { text: text.slice(0, found), stopped: true }
      }
      const heldLength = Math.max(0, ...stops.map((stop) => openEnding(text, stop)))
      held = text.slice(text.length - heldLength)
      return { text: text.slice(0, text.length - heldLength), stopped: false }
    },
    end() {
      const rest = held
      held = ''
      return rest
    },
  }
}

/**
 * Where the stop string begins that is complete before any other, so that the answer does not depend on how the text
 * was cut.
 */
function firstCompleted(text: string, stops: readonly string[]): number | undefined {
  const found = stops
    .map((stop) => ({ start: text.indexOf(stop), length: stop.length }))
    .filter(({ start }) => start >= 0)
    .sort((a, b) => a.start + a.length - (b.start + b.length) || a.start - b.start)
  return found[0]?.start
}

/** Length of the longest ending of `text` with which `stop` begins. */
function openEnding(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length -= 1) {
    if (stop.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}
