import { type Deadline, startDeadline, withinLimit } from '../async/deadline.ts'
import {
  type AttachBudget,
  type AttachOutcome,
  type KvPresence,
  type KvTurn,
  settledClaim,
} from '../kvcache/kv-connector.ts'
import { worthwhileLoadMs } from '../routing/cost-model.ts'
import type { RoutingInput } from '../routing/router.ts'
import type { StoredKv } from '../sessions/session-record.ts'
import type { RequestScope } from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import type { SessionTurn, TurnParts } from './turn.ts'

/** The client disconnected while the request was decided; the dispatcher makes it the decision `cancelled`. */
export class RequestCancelledError extends Error {
  override readonly name = 'RequestCancelledError'
}

/** Added to the time that a decision may take, so that it arrives before Envoy's message timeout. */
export const decisionMarginMs = 1000

/** Time limit of an engine's small control calls, milliseconds. */
const controlCallsMs = 1000

/**
 * How long a turn waits for its KV, milliseconds: never longer than recomputing is predicted to take, at least as long as control calls
 * take, and at most `maxLoadMs`, which bounds a wrong prediction.
 */
export const loadBudgetMs = (
  { costs, maxLoadMs }: Pick<TurnParts, 'costs' | 'maxLoadMs'>,
  model: string,
  storedTokens: number | undefined,
): number => {
  const recomputeMs = storedTokens === undefined ? 0 : costs.recomputeMs(model, storedTokens)
  return Math.min(Math.max(recomputeMs, controlCallsMs), maxLoadMs)
}

/** A decision that takes longer may exceed Envoy's message timeout. */
const longDecisionMs = 1000
const detachTimeoutMs = 5000

/**
 * The load's deadline. Signal and timer are made when a connector first reads the signal: together they cost more than most turns whose KV
 * lies in the pod (9 of 50 µs). Only then is Envoy asked for more time.
 */
const lazyDeadline = (budgetMs: number, scope: RequestScope): AttachBudget & { end(): void } => {
  let deadline: Deadline | undefined
  const start = (): Deadline => {
    if (budgetMs > longDecisionMs) scope.extendDeadline(Math.ceil(budgetMs) + decisionMarginMs)
    return startDeadline(scope.signal, Math.max(1, Math.ceil(budgetMs)))
  }
  return {
    get signal() {
      deadline ??= start()
      return deadline.signal
    },
    end: () => deadline?.end(),
  }
}

/**
 * Makes the pod ready for the turn within the budget: counts the turn there, and attaches the session's KV.
 * @throws RequestCancelledError
 */
export const attachKv = async (
  parts: TurnParts,
  turn: SessionTurn,
  limits: { readonly budgetMs: number; readonly scope: RequestScope },
): Promise<Omit<AttachOutcome, 'claim'> & { readonly claim: string | undefined }> => {
  const { predictor } = parts
  const { turnId, route, session } = turn
  const { kv, model } = session
  const { pod, input } = route
  const isWorthwhile = kv === undefined || worthwhileLoadMs(parts.costs, { model, stored: kv, residentTokens: 0 })
  const kvTurn: KvTurn = {
    session: session.key,
    tenant: turn.tenant,
    model,
    turnId,
    pod,
    startsAnew: turn.startsAnew ?? false,
    kvStatus: session.kvStatus,
    createdAtMs: session.createdAtMs,
    contentKey: turn.contentKey,
    opening: turn.opening,
    mayLoad: isWorthwhile !== undefined,
  }
  const predicted = { turnId, pod, model }
  const startedMs = performance.now()
  // Counted before the load, so that routing sees turns that are still loading.
  parts.pods.turnStarted(pod, turnId)
  predictor.routed(predicted, input)
  const deadline = lazyDeadline(limits.budgetMs, limits.scope)
  let attached: AttachOutcome
  try {
    attached = await load(parts, { kvTurn, kv, input }, { waitMs: limits.budgetMs / 2, budget: deadline })
  } finally {
    deadline.end()
  }
  const { presence, fields } = attached
  const claim = attached.claim === settledClaim ? undefined : attached.claim
  predictor.loadEnded(predicted, loadedOf(presence, kv))
  if (limits.scope.signal.aborted) {
    parts.pods.turnEnded(pod, turnId)
    predictor.ended(predicted, { how: 'abandoned', response: undefined })
    if (claim !== undefined)
      await withinLimit(detachTimeoutMs, (signal) => parts.connector.detach(kvTurn, claim, signal))
    throw new RequestCancelledError()
  }
  parts.events.attached(presence, performance.now() - startedMs)
  predictor.forwarded(predicted, (input.promptTokens ?? 0) - presentTokensOf(presence))
  if (presence.kind === 'missing' && presence.isKept !== true && kv !== undefined) {
    const drop = parts.store.dropKv({ key: session.key, artefactId: kv.artefactId, reason: 'kv_missing' })
    drop.catch((error: unknown) => reportFault(parts.events, 'drop_kv', error))
  }
  return { presence, fields, claim }
}

/** Attaches the turn. Where loads are limited, a turn that is not admitted within `waitMs` attaches without a load. */
const load = async (
  { admission, connector }: TurnParts,
  turn: { readonly kvTurn: KvTurn; readonly kv: StoredKv | undefined; readonly input: RoutingInput },
  limits: { readonly waitMs: number; readonly budget: AttachBudget },
): Promise<AttachOutcome> => {
  const { kvTurn, kv } = turn
  const { turnId, pod, model } = kvTurn
  const bytes = bytesToLoad(kvTurn, kv, turn.input)
  const attachWith = (options: { readonly mayLoad: boolean }): Promise<AttachOutcome> =>
    connector.attach(options.mayLoad ? kvTurn : { ...kvTurn, mayLoad: false }, kv, limits.budget)
  if (admission === undefined || bytes === 0) return attachWith({ mayLoad: true })
  const work = { kind: 'load', turnId, model, pod } as const
  const requested = admission.request(work, { waitMs: limits.waitMs, client: limits.budget })
  const settled = requested.kind === 'waiting' ? await requested.settled : requested
  if (settled.kind !== 'admitted') {
    const attached = await attachWith({ mayLoad: false })
    // The load was worthwhile, and waited too long for its turn.
    return attached.presence.kind === 'not-worthwhile' ? { ...attached, presence: { kind: 'timed-out' } } : attached
  }
  try {
    return await attachWith({ mayLoad: true })
  } finally {
    admission.release('load', turnId)
  }
}

/** Predicted size of the load: the part of the stored KV that the pod probably lacks. */
const bytesToLoad = ({ mayLoad, pod }: KvTurn, kv: StoredKv | undefined, input: RoutingInput): number => {
  if (kv === undefined || mayLoad === false || kv.tokens <= 0) return 0
  const missing = Math.max(0, kv.tokens - (input.residentTokens?.get(pod) ?? 0))
  return (kv.bytes * missing) / kv.tokens
}

/** Only a complete load shows what a byte costs. */
const loadedOf = (
  presence: KvPresence,
  kv: StoredKv | undefined,
): { readonly bytes: number; readonly loadMs: number } | undefined =>
  presence.kind === 'loaded' && kv !== undefined && presence.tokens >= kv.tokens
    ? { bytes: kv.bytes, loadMs: presence.loadMs }
    : undefined

const presentTokensOf = (presence: KvPresence): number =>
  presence.kind === 'resident' || presence.kind === 'loaded' || presence.kind === 'on-demand' ? presence.tokens : 0
