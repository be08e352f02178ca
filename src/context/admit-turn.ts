import type { Admission } from '../admission/admission.ts'
import type { AttachOutcome } from '../kvcache/kv-connector.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { RequestScope } from './context-cache-manager.ts'
import { answerMarginMs } from './load-policy.ts'

/** What admission asks of a turn. */
export interface TurnToAdmit {
  readonly turnId: string
  /** Undefined where it is not known from the headers. */
  readonly model: string | undefined
  readonly pod: string
}

/**
 * Waits until a turn may be forwarded. It holds its resources until `release('prefill', turnId)`. `laterMs` is what the decision may take after
 * that. `left`: its client has gone, and nothing is held.
 * @throws GatewayError `rate_limit_exceeded`
 */
export const admitTurn = async (
  admission: Admission,
  turn: TurnToAdmit,
  limits: { readonly laterMs: number; readonly scope: RequestScope },
): Promise<'admitted' | 'left'> => {
  const { scope } = limits
  const { turnId, model, pod } = turn
  const answer = admission.request(
    { kind: 'prefill', turnId, model, pod },
    { waitMs: admission.maxWaitMs, client: scope },
  )
  // Only the first extension of a decision counts, so that it has to do for the load, too.
  if (answer.kind === 'waiting') scope.extendDeadline(admission.maxWaitMs + Math.ceil(limits.laterMs) + answerMarginMs)
  const settled = answer.kind === 'waiting' ? await answer.settled : answer
  switch (settled.kind) {
    case 'admitted':
      if (!scope.isAbandoned()) return 'admitted'
      admission.release('prefill', turnId)
      return 'left'
    case 'left':
      return 'left'
    case 'refused':
      throw new GatewayError('rate_limit_exceeded', { headers: { 'retry-after': retryAfterOf(admission) } })
  }
}

/** By then everybody who waits now has been served or sent away. */
const retryAfterOf = ({ maxWaitMs }: Admission): string => String(Math.max(1, Math.ceil(maxWaitMs / 1000)))

/**
 * Attaches a turn that has KV to load, with the resources for a load or, where these do not come free in half the budget, without the load.
 * `signal` fires when the budget is spent.
 */
export const attachWithAdmittedLoad = async (
  admission: Admission,
  turn: TurnToAdmit,
  limits: { readonly budgetMs: number; readonly signal: AbortSignal },
  attach: (options: { readonly mayLoad: boolean }) => Promise<AttachOutcome>,
): Promise<AttachOutcome> => {
  const { turnId, model, pod } = turn
  const answer = admission.request(
    { kind: 'load', turnId, model, pod },
    { waitMs: limits.budgetMs / 2, client: limits },
  )
  const settled = answer.kind === 'waiting' ? await answer.settled : answer
  if (settled.kind !== 'admitted') {
    const attached = await attach({ mayLoad: false })
    // Loading would have been worth it.
    return attached.presence.kind === 'not-worthwhile' ? { ...attached, presence: { kind: 'timed-out' } } : attached
  }
  try {
    return await attach({ mayLoad: true })
  } finally {
    admission.release('load', turnId)
  }
}
