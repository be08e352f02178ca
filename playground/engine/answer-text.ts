// The text of an answer, from the bytes of its tokens: characters that are cut in two are joined, and the answer ends
// at the first of the client's stop strings.
import { createStopMatcher, type StopMatch } from './stop-matcher.ts'

/** Why an answer ended: the model or a stop string ended it, or it had reached its limit of tokens. */
export type FinishReason = 'stop' | 'length'

export interface AnswerText {
  /** Takes the bytes of one token. */
  push(bytes: Uint8Array): StopMatch
  /** What was held back; U+FFFD for a character that never became whole. */
  end(): StopMatch
}

/** `stops` are not empty strings. */
export const createAnswerText = (stops: readonly string[]): AnswerText => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const matcher = createStopMatcher(stops)
  return {
    push: (bytes) => matcher.push(decoder.decode(bytes, { stream: true })),
    end: () => {
      const { text, stopped } = matcher.push(decoder.decode())
      return { text: stopped ? text : text + matcher.end(), stopped }
    },
  }
}
