import { type Deadline, settledWithin, startDeadline } from '../async/deadline.ts'
import type { SessionTurn as KvSessionTurn, PreparedTurn } from '../kvcache/kv-cache.ts'
import type { KvPresence, PrepareBudget } from '../kvcache/kv-connector.ts'
import type { KvMissReason } from '../kvcache/reasons.ts'
import { worthwhileLoadMs } from '../routing/cost-model.ts'
import { type Attempt, RequestCancelledError } from './admit-turn.ts'
import { reportFault } from './context-events.ts'
import type { DecisionTime } from './decision-time.ts'
import { type PromisedKv, promisedBy } from './hit-check.ts'
import { listedModel, type Pool } from './pools.ts'
import type { Route } from './route-turn.ts'
import type { SessionTurn, TurnParts } from './session-turn.ts'

/** Time limit of an engine's small control calls, milliseconds. */
const controlCallsMs = 1000

/**
 * How long a turn waits for its KV at a pod, milliseconds: never longer than the pod is predicted to need for computing
 * it, behind what it computes already, which delays its control calls, too. At least as long as control calls take, and
 * at most `maxLoadMs`, which bounds a wrong prediction.
 */
export const loadBudgetMs = (
  { costs, maxLoadMs }: Pick<Pool, 'costs' | 'maxLoadMs'>,
  model: string,
  { tokens, backlogMs }: { readonly tokens: number; readonly backlogMs: number },
): number => {
  const recomputeMs = tokens === 0 ? 0 : costs.recomputeMs(model, tokens)
  return Math.min(Math.max(backlogMs + recomputeMs, controlCallsMs), maxLoadMs)
}

/** Share of loads that are tried although they seem useless: what was measured in a bad hour may have changed. */
const triedShare = 0.02

interface Limits {
  /** Of the load. */
  readonly budgetMs: number
  readonly decision: DecisionTime
}

/** A decision that waits for a longer load may exceed Envoy's message timeout. */
const longLoadMs = 1000
const releaseTimeoutMs = 5000

/**
 * The limits of an attempt. Signals and timers are made when a connector first reads them: together they cost 9 of the
 * 50 µs of a turn whose KV lies in the pod, as most do. Only then is Envoy asked for more time.
 */
const lazyBudget = (
  { budgetMs, decision }: Limits,
  hooks: {
    readonly refuse: (client: PrepareBudget) => Promise<KvMissReason | undefined>
    readonly onBegan: () => void
    readonly onEnded: () => void
  },
): PrepareBudget & { end(): void } => {
  let load: Deadline | undefined
  let place: Deadline | undefined
  let refusal: Promise<KvMissReason | undefined> | undefined
  const start = (limitMs: number): Deadline => startDeadline(decision.signal, Math.max(1, Math.ceil(limitMs)))
  const budget = {
    get signal() {
      if (budgetMs > longLoadMs) decision.extend()
      else decision.extendIfLong()
      if (load === undefined) {
        load = start(budgetMs)
        hooks.onBegan()
      }
      return load.signal
    },
    get placeSignal() {
      decision.extendIfLong()
      place ??= start(decision.roomLeftMs())
      return place.signal
    },
    refuseLoad: () => {
      refusal ??= hooks.refuse(budget)
      return refusal
    },
    end: () => {
      if (load !== undefined) hooks.onEnded()
      load?.end()
      place?.end()
    },
  }
  return budget
}

/** A turn whose pod is prepared. */
export interface PreparedSessionTurn extends PreparedTurn {
  readonly route: Route
  readonly preparedMs: number
  /** What the engine is expected to reuse, also where it has failed to, so that nothing is promised. Default: nothing. */
  readonly promised: PromisedKv | undefined
}

/** Counts the turn at its pod, and brings the session's KV there within the budget. @throws RequestCancelledError */
export const prepareKv = async (
  parts: TurnParts,
  turn: SessionTurn,
  limits: Limits,
): Promise<Attempt<PreparedSessionTurn>> => {
  const { turnId, route, session } = turn
  const { pods, costs, predictor } = route.pool
  const { kv, model } = session
  const { pod, input } = route
  const kvTurn: KvSessionTurn = {
    session: session.key,
    tenant: turn.tenant,
    model,
    turnId,
    pod,
    isMessages: route.isMessages,
    stored: kv,
    restarted: turn.restarted ?? false,
    createdAtMs: session.createdAtMs,
    kvStatus: session.kvStatus,
    isLong: !predictor.expect(input, pod).isShort,
  }
  const predicted = { turnId, pod, model }
  const isReused = (source: PromisedKv['source']): boolean =>
    parts.hitCheck.isReused({ pool: route.pool.name, model: listedModel(route.pool, model), source })
  const startedMs = performance.now()
  // Counted before the load, so that routing sees turns that are still loading.
  pods.turnStarted(pod, turnId)
  predictor.routed(predicted, input)
  const waitMs = limits.budgetMs / 2
  const refuse = (client: PrepareBudget) =>
    refuseLoad({ ...parts, costs }, kvTurn, { waitMs, client, isReused: isReused('loaded') })
  const budget = lazyBudget(limits, {
    refuse,
    onBegan: () => parts.events.loadBegan(pod),
    onEnded: () => parts.events.loadEnded(pod),
  })
  let prepared: PreparedTurn
  try {
    prepared = await route.pool.kv.prepare(kvTurn, budget)
  } finally {
    budget.end()
    parts.admission.release('load', turnId)
  }
  const { claim } = prepared
  predictor.loadEnded(predicted, loadedOf(prepared.presence, kv))
  const promised = promisedBy(prepared.presence)
  const presence: KvPresence =
    promised === undefined || isReused(promised.source)
      ? prepared.presence
      : { kind: 'miss', reason: 'engine_reuses_nothing' }
  const hasRoom = presence.kind === 'hit' || presence.reason !== 'no_slot'
  const isPodAway = presence.kind === 'miss' && presence.isPodAway === true
  if (isPodAway) pods.markUnhealthy(pod)
  const withdraw = async (): Promise<void> => {
    pods.turnEnded(pod, turnId)
    predictor.ended(predicted, { how: 'abandoned', response: undefined })
    // Without room it holds nothing, and a report of room would let it try again at once.
    if (claim === undefined || !hasRoom) return
    const release = (signal: AbortSignal) => route.pool.kv.release({ ...kvTurn, claim, signal })
    await settledWithin(releaseTimeoutMs, release, () => undefined)
  }
  if (limits.decision.signal.aborted) {
    await withdraw()
    throw new RequestCancelledError()
  }
  const preparedMs = performance.now() - startedMs
  const accept = (): PreparedSessionTurn => {
    parts.events.prepared(presence, preparedMs, route.pool.name)
    predictor.forwarded(predicted, input, (input.promptTokens ?? 0) - presentTokensOf(presence))
    if (presence.kind === 'miss' && presence.gone === true && kv !== undefined) {
      const drop = parts.store.dropArtefacts({ artefactIds: [kv.artefactId], reason: 'kv_missing' })
      drop.catch((error: unknown) => reportFault(parts.events, 'drop_kv', error))
    }
    return { ...prepared, presence, promised, route, preparedMs }
  }
  return { hasRoom, isPodAway, accept, withdraw }
}

/** Where loads are limited, one that is not admitted within `waitMs` is refused. */
const refuseLoad = async (
  { admission, costs }: Pick<TurnParts, 'admission'> & Pick<Pool, 'costs'>,
  { turnId, pod, model, stored }: KvSessionTurn,
  limits: { readonly waitMs: number; readonly client: PrepareBudget; readonly isReused: boolean },
): Promise<KvMissReason | undefined> => {
  const { waitMs, client, isReused } = limits
  if (!isReused && Math.random() >= triedShare) return 'engine_reuses_nothing'
  const loadMs = stored && worthwhileLoadMs(costs, { model, stored, residentTokens: 0 })
  if (loadMs === undefined && Math.random() >= triedShare) return 'load_too_slow'
  // A connector that comes here late has been given up, and would hold what nobody releases.
  if (client.signal.aborted) return 'load_timeout'
  const settled = await admission.admitLoad({ turnId, pod, model, waitMs, signal: client.signal })
  return settled.kind === 'admitted' ? undefined : 'load_timeout'
}

/** Only a complete load shows what a byte costs. */
const loadedOf = (presence: KvPresence, stored: KvSessionTurn['stored']) =>
  presence.kind === 'hit' && presence.loadMs !== undefined && stored !== undefined && presence.tokens >= stored.tokens
    ? { bytes: stored.bytes, loadMs: presence.loadMs }
    : undefined

const presentTokensOf = (presence: KvPresence): number => (presence.kind === 'hit' ? presence.tokens : 0)
