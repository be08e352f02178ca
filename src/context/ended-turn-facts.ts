import { computedTokensOf, type TokenUsage } from '../openai/usage.ts'
import type { TurnEnd } from './context-cache-manager.ts'
import type { EndedTurnFacts } from './context-events.ts'
import { listedModel, type Pool } from './pools.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** Facts of a turn that has ended, from its ticket and what was reported. */
export const factsOf = (
  { ticket, pool, pod }: { readonly ticket: TurnTicket; readonly pool: Pool | undefined; readonly pod: string },
  turn: Pick<TurnEnd, 'status' | 'usage'> & Partial<TurnEnd>,
): EndedTurnFacts => {
  const { session, namedBy, cacheStatus, preparedMs, waitedMs, traceId, requestId } = ticket
  const { status, ttfbMs, isStream } = turn
  const model = listedModel(pool, session?.model ?? ticket.model)
  const prefill = session === undefined ? undefined : prefillOf(pool, session.model, turn.usage)
  const others = { namedBy, preparedMs, waitedMs, ttfbMs, isStream, traceId, requestId, prefill }
  return { pool: ticket.pool, pod, session: session?.key, model, status, cacheStatus, ...others }
}

const prefillOf = (pool: Pool | undefined, model: string, usage: TokenUsage | undefined): EndedTurnFacts['prefill'] => {
  if (pool === undefined || usage === undefined) return undefined
  const computedMs = pool.costs.recomputeMs(model, computedTokensOf(usage))
  return { savedMs: Math.max(0, pool.costs.recomputeMs(model, usage.promptTokens) - computedMs), computedMs }
}
