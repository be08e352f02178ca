import type { TurnEnd } from '../../src/context/context-service.ts'

/** The end of a turn whose answer came whole, and said nothing of tokens. */
export const wholeAnswer: TurnEnd = {
  status: 200,
  complete: true,
  clientLeft: false,
  upstreamFailed: false,
  servedBy: undefined,
  usage: undefined,
  firstByteMs: undefined,
}
