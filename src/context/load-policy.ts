import { withinLimit } from '../async/deadline.ts'
import { type CostEstimate, worthwhileLoadMs } from '../routing/cost-model.ts'
import type { StoredKv } from '../sessions/session-record.ts'
import type { RequestScope } from './context-cache-manager.ts'

/** Decides how long a turn waits for its KV. */
export interface LoadPolicy {
  /** Milliseconds for making the pod ready; `tokens` is what the stored artefact holds, undefined where nothing is stored. */
  budgetMs(model: string, tokens: number | undefined): number
  /** Whether to load a stored artefact at all: not where computing it takes less time. */
  isWorthwhile(model: string, kv: StoredKv): boolean
}

/** What the engine's small control calls may take even when there is nothing to load. */
const controlCallsMs = 1000

/** Waiting longer than recomputing would take is never worth it, and `maxLoadMs` bounds a wrong estimate. */
export const createLoadPolicy = (options: {
  readonly estimate: CostEstimate
  readonly maxLoadMs: number
}): LoadPolicy => ({
  budgetMs: (model, tokens) =>
    tokens === undefined
      ? Math.min(controlCallsMs, options.maxLoadMs)
      : Math.min(Math.max(options.estimate.recomputeMs(model, tokens), controlCallsMs), options.maxLoadMs),
  isWorthwhile: (model, kv) =>
    worthwhileLoadMs(options.estimate, { model, stored: kv, residentTokens: 0 }) !== undefined,
})

/** Below this, Envoy's message timeout leaves room enough. */
const longBudgetMs = 1000
/** Put on top of what a decision may take, so that its answer is in time. */
export const answerMarginMs = 1000

/** Runs `work` with a signal that fires when the budget is spent or the client leaves; tells Envoy when the budget is long. */
export const withBudget = async <T>(
  limits: { readonly budgetMs: number; readonly scope: RequestScope },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const { budgetMs, scope } = limits
  if (budgetMs > longBudgetMs) scope.extendDeadline(Math.ceil(budgetMs) + answerMarginMs)
  return withinLimit(Math.max(1, Math.ceil(budgetMs)), work, scope.signal)
}
