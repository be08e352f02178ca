import { type Deadline, startDeadline, withinLimit } from '../async/deadline.ts'
import type { SessionTurn as KvSessionTurn, PreparedTurn } from '../kvcache/kv-cache.ts'
import type { KvPresence, PrepareBudget } from '../kvcache/kv-connector.ts'
import { worthwhileLoadMs } from '../routing/cost-model.ts'
import type { RoutingInput } from '../routing/router.ts'
import type { RequestScope } from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import type { Pool } from './pools.ts'
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
 * How long a turn waits for its KV, milliseconds: never longer than recomputing is predicted to take, at least as long
 * as control calls take, and at most `maxLoadMs`, which bounds a wrong prediction.
 */
export const loadBudgetMs = (
  { costs, maxLoadMs }: Pick<Pool, 'costs' | 'maxLoadMs'>,
  model: string,
  tokens: number,
): number => {
  const recomputeMs = tokens === 0 ? 0 : costs.recomputeMs(model, tokens)
  return Math.min(Math.max(recomputeMs, controlCallsMs), maxLoadMs)
}

/** A decision that takes longer may exceed Envoy's message timeout. */
const longDecisionMs = 1000
const releaseTimeoutMs = 5000

/**
 * The load's deadline. Signal and timer are made when a connector first reads the signal: together they cost 9 of the
 * 50 µs of a turn whose KV lies in the pod, as most do. Only then is Envoy asked for more time.
 */
const lazyDeadline = (budgetMs: number, scope: RequestScope): PrepareBudget & { end(): void } => {
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
 * Prepares the pod for the turn within the budget: counts the turn there, and brings the session's KV.
 * @throws RequestCancelledError
 */
export const prepareKv = async (
  parts: TurnParts,
  turn: SessionTurn,
  limits: { readonly budgetMs: number; readonly scope: RequestScope },
): Promise<PreparedTurn & { readonly preparedMs: number }> => {
  const { turnId, route, session } = turn
  const { pods, costs, predictor } = route.pool
  const { kv, model } = session
  const { pod, input } = route
  const isWorthwhile = kv === undefined || worthwhileLoadMs(costs, { model, stored: kv, residentTokens: 0 })
  const kvTurn: KvSessionTurn = {
    session: session.key,
    tenant: turn.tenant,
    model,
    turnId,
    pod,
    stored: kv,
    restarted: turn.restarted ?? false,
    createdAtMs: session.createdAtMs,
    kvStatus: session.kvStatus,
    mayLoad: isWorthwhile !== undefined,
  }
  const predicted = { turnId, pod, model }
  const startedMs = performance.now()
  // Counted before the load, so that routing sees turns that are still loading.
  pods.turnStarted(pod, turnId)
  predictor.routed(predicted, input)
  const deadline = lazyDeadline(limits.budgetMs, limits.scope)
  let prepared: PreparedTurn
  try {
    prepared = await load(
      { admission: parts.admission, kv: route.pool.kv },
      { kvTurn, input },
      { waitMs: limits.budgetMs / 2, budget: deadline },
    )
  } finally {
    deadline.end()
  }
  const { presence, claim } = prepared
  predictor.loadEnded(predicted, loadedOf(presence, kv))
  if (limits.scope.signal.aborted) {
    pods.turnEnded(pod, turnId)
    predictor.ended(predicted, { how: 'abandoned', response: undefined })
    if (claim !== undefined)
      await withinLimit(releaseTimeoutMs, (signal) => route.pool.kv.release({ ...kvTurn, claim, signal }))
    throw new RequestCancelledError()
  }
  const preparedMs = performance.now() - startedMs
  parts.events.prepared(presence, preparedMs, route.pool.name)
  predictor.forwarded(predicted, (input.promptTokens ?? 0) - presentTokensOf(presence))
  if (presence.kind === 'miss' && presence.gone === true && kv !== undefined) {
    const drop = parts.store.dropKv({ key: session.key, artefactId: kv.artefactId, reason: 'kv_missing' })
    drop.catch((error: unknown) => reportFault(parts.events, 'drop_kv', error))
  }
  return { ...prepared, preparedMs }
}

/** Where loads are limited, a turn that is not admitted within `waitMs` is prepared without a load. */
const load = async (
  { admission, kv }: Pick<TurnParts, 'admission'> & Pick<Pool, 'kv'>,
  { kvTurn, input }: { readonly kvTurn: KvSessionTurn; readonly input: RoutingInput },
  { waitMs, budget }: { readonly waitMs: number; readonly budget: PrepareBudget },
): Promise<PreparedTurn> => {
  const { turnId, pod, model } = kvTurn
  const bytes = bytesToLoad(kvTurn, input)
  if (admission === undefined || bytes === 0) return kv.prepare(kvTurn, budget)
  const work = { kind: 'load', turnId, model, pod } as const
  const requested = admission.request(work, { waitMs, client: budget })
  const settled = requested.kind === 'waiting' ? await requested.settled : requested
  if (settled.kind !== 'admitted') {
    const prepared = await kv.prepare({ ...kvTurn, mayLoad: false }, budget)
    const { presence } = prepared
    // The load was worthwhile, and waited too long for its turn.
    return presence.kind === 'miss' && presence.reason === 'load_too_slow'
      ? { ...prepared, presence: { ...presence, reason: 'load_timeout' } }
      : prepared
  }
  try {
    return await kv.prepare(kvTurn, budget)
  } finally {
    admission.release('load', turnId)
  }
}

/** Predicted size of the load: the part of the stored KV that the pod probably lacks. */
const bytesToLoad = ({ mayLoad, pod, stored }: KvSessionTurn, input: RoutingInput): number => {
  if (stored === undefined || !mayLoad || stored.tokens <= 0) return 0
  const missing = Math.max(0, stored.tokens - (input.residentTokens?.get(pod) ?? 0))
  return (stored.bytes * missing) / stored.tokens
}

/** Only a complete load shows what a byte costs. */
const loadedOf = (
  presence: KvPresence,
  stored: KvSessionTurn['stored'],
): { readonly bytes: number; readonly loadMs: number } | undefined =>
  presence.kind === 'hit' && presence.loadMs !== undefined && stored !== undefined && presence.tokens >= stored.tokens
    ? { bytes: stored.bytes, loadMs: presence.loadMs }
    : undefined

const presentTokensOf = (presence: KvPresence): number => (presence.kind === 'hit' ? presence.tokens : 0)
