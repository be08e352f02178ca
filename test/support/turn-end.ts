import type { TurnEnd } from '../../src/context/context-cache-manager.ts'

/** The end of a turn whose answer came whole, and said nothing of tokens. */
export const wholeAnswer: TurnEnd = {
  status: 200,
  complete: true,
  clientDisconnected: false,
  upstreamFailed: false,
  servedBy: undefined,
  usage: undefined,
  ttfbMs: undefined,
}
