import { decisionMarginMs } from '../admission/plan/decision-margin.ts'
import type { RequestScope } from './context-cache-manager.ts'

/** A decision that takes longer may exceed Envoy's message timeout, even if each part of it is short. */
const longDecisionMs = 500

/** How long a decision may take, and when Envoy has to know that. */
export interface DecisionTime {
  /** Aborted when the client disconnects or Envoy cancels the request. */
  readonly signal: AbortSignal
  /** Time that is left to wait for room, milliseconds: what remains after that is for the load. */
  roomLeftMs(): number
  /** Envoy is asked for more time now. */
  extend(): void
  /** Envoy is asked for more time if the decision gets long. */
  extendIfLong(): void
  end(): void
}

/**
 * The time of one decision, from now. Envoy takes only one extension, which therefore covers all that may follow:
 * `messageTimeoutMs`. `loadMs` is kept for the load.
 */
export const startDecision = (
  scope: RequestScope,
  { messageTimeoutMs, loadMs }: { readonly messageTimeoutMs: number; readonly loadMs: number },
): DecisionTime => {
  const startedMs = performance.now()
  let isExtended = false
  let timer: NodeJS.Timeout | undefined
  const extend = (): void => {
    if (!isExtended) scope.extendDeadline(messageTimeoutMs)
    isExtended = true
  }
  return {
    get signal() {
      return scope.signal
    },
    roomLeftMs: () => Math.max(0, messageTimeoutMs - loadMs - decisionMarginMs - (performance.now() - startedMs)),
    extend,
    extendIfLong: () => {
      timer ??= setTimeout(extend, longDecisionMs)
    },
    end: () => clearTimeout(timer),
  }
}
