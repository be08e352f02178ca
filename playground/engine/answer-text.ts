// The text of an answer, from the bytes of its tokens: characters that are cut in two are joined, and the answer ends
// at the first of the client's stop strings, also where one arrives in pieces.

/** Why an answer ended: the model or a stop string ended it, or it had reached its limit of tokens. */
export type FinishReason = 'stop' | 'length'

/** `stops` are not empty strings. `onText` receives what can be emitted after each token, sometimes nothing. */
export const createAnswerText = (stops: readonly string[], onText: (text: string) => void) => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let emitted = ''
  let held = ''
  const take = (piece: string, isLast: boolean): boolean => {
    const text = held + piece
    const stopAt = firstCompleted(text, stops)
    const heldFrom = isLast ? text.length : text.length - Math.max(0, ...stops.map((stop) => openEnding(text, stop)))
    held = text.slice(heldFrom)
    const ready = text.slice(0, stopAt ?? heldFrom)
    emitted += ready
    onText(ready)
    return stopAt !== undefined
  }
  return {
    /** Takes the bytes of a token. Holds back what may begin a stop string. True: one has ended the answer. */
    push: (bytes: Uint8Array): boolean => take(decoder.decode(bytes, { stream: true }), false),
    /** Emits what was held back; U+FFFD for a character that never became whole. True as for `push`. */
    end: (): boolean => take(decoder.decode(), true),
    /** All that was emitted. */
    text: (): string => emitted,
  }
}

/** Where the stop string begins that is complete first: the answer does not depend on how the text was cut. */
const firstCompleted = (text: string, stops: readonly string[]): number | undefined =>
  stops
    .map((stop) => ({ start: text.indexOf(stop), length: stop.length }))
    .filter(({ start }) => start >= 0)
    .sort((a, b) => a.start + a.length - (b.start + b.length) || a.start - b.start)[0]?.start

/** Length of the longest ending of `text` with which `stop` begins. */
const openEnding = (text: string, stop: string): number => {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length -= 1) {
    if (stop.startsWith(text.slice(-length))) return length
  }
  return 0
}
