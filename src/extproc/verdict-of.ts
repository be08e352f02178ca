import type { HeadersDecision } from '../context/context-cache-manager.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { ProcessHooks } from './process-hooks.ts'
import { rejection, toVerdict, type Verdict } from './verdict.ts'

/**
 * The verdict on what `decide` decides. Never rejects: whatever goes wrong while a decision is taken is told as a fault, and becomes a 500 for this client
 * alone. Also what throws at once is answered later, and not in the midst of the message that it is about.
 */
export const verdictOf = async (
  decide: () => Promise<HeadersDecision>,
  hooks: Pick<ProcessHooks, 'fault'>,
): Promise<Verdict> => {
  try {
    return toVerdict(await decide())
  } catch (thrown) {
    hooks.fault(thrown)
    return rejection(GatewayError.from(thrown))
  }
}
