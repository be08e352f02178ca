import { nanoid } from 'nanoid'
import type { Admission } from '../admission/admission.ts'
import { withinLimit } from '../async/deadline.ts'
import {
  type AttachOutcome,
  type EngineField,
  type KvConnector,
  type KvOpening,
  type KvPresence,
  type KvTurn,
  settledClaim,
} from '../kvcache/kv-connector.ts'
import type { ContentKey } from '../kvcache/vault/token-vault.ts'
import { GatewayError } from '../openai/gateway-error.ts'
import type { PodSource } from '../routing/pod.ts'
import type { Router, RoutingInput } from '../routing/router.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { SessionKey, StoredKv, TenantKey } from '../sessions/session-record.ts'
import type { SessionStore, TurnExpiry } from '../sessions/session-store.ts'
import { admitTurn, attachWithAdmittedLoad, type TurnToAdmit } from './admit-turn.ts'
import { type GatewayRequest, type RequestScope, requestKeyHeader } from './context-cache-manager.ts'
import type { ContextEvents } from './context-events.ts'
import { type LoadPolicy, withBudget } from './load-policy.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** What every turn needs of its surroundings. */
export interface TurnParts {
  readonly store: SessionStore
  readonly router: Router
  readonly pods: Pick<PodSource, 'turnStarted' | 'turnEnded' | 'markUnhealthy'>
  readonly connector: KvConnector
  readonly loadPolicy: LoadPolicy
  readonly forecast: TtftPredictor
  readonly events: ContextEvents
  /** Undefined: nothing limits how many turns run. */
  readonly admission?: Admission | undefined
}

/** A pod for one turn, and where else it may go. */
export interface Route {
  readonly pod: string
  readonly destinations: readonly [string, ...string[]]
}

/**
 * A name for one turn, unguessable and unique: the key of its request, by which Envoy may have to tell how it ended; where there is none, one that is
 * made here.
 */
export const turnIdFor = (request: Pick<GatewayRequest, 'header'>): string => {
  const [key = ''] = request.header(requestKeyHeader)
  return plainKey.test(key) ? key : nanoid(16)
}

const plainKey = /^[\w-]{1,64}$/

/**
 * Chooses the pod of a turn.
 * @throws GatewayError `no_ready_endpoints`, `invalid_routing_strategy`
 */
export const routeTurn = (
  parts: Pick<TurnParts, 'router' | 'events'>,
  request: GatewayRequest,
  turn: RoutingInput,
): Route => {
  const outcome = parts.router.route(turn, request.header('routing-strategy')[0])
  switch (outcome.kind) {
    case 'routed':
      parts.events.routed(outcome.policy, outcome.pod)
      return { pod: outcome.pod, destinations: [outcome.pod, ...outcome.fallbacks] }
    case 'no-ready-pod':
      throw new GatewayError('no_ready_endpoints')
    case 'unknown-policy':
      throw new GatewayError('invalid_routing_strategy', {
        param: 'routing-strategy',
        message: `The routing-strategy header must be one of ${outcome.known.join(', ')}.`,
      })
  }
}

/** Nobody waits for the decision any more: whatever is decided is not sent. */
export class ClientLeftError extends Error {
  override readonly name = 'ClientLeftError'
}

const detachTimeoutMs = 5000

/** Never fires: for instant calls. */
const unlimited: AbortSignal = new AbortController().signal

/**
 * Calls `start` when the turn may be forwarded: at once, and without a promise, where nothing limits that. While the turn waits it counts
 * nowhere; its end, or a fault of `start`, lets go of what it holds. `laterMs` is what `start` may take.
 * @throws GatewayError `rate_limit_exceeded`
 * @throws ClientLeftError
 */
export const whenAdmitted = <T>(
  parts: Pick<TurnParts, 'admission'>,
  turn: TurnToAdmit,
  limits: { readonly laterMs: number; readonly scope: RequestScope },
  start: () => T | Promise<T>,
): T | Promise<T> => (parts.admission === undefined ? start() : startAdmitted(parts.admission, turn, limits, start))

const startAdmitted = async <T>(
  admission: Admission,
  turn: TurnToAdmit,
  limits: { readonly laterMs: number; readonly scope: RequestScope },
  start: () => T | Promise<T>,
): Promise<T> => {
  if ((await admitTurn(admission, turn, limits)) === 'left') throw new ClientLeftError()
  try {
    return await start()
  } catch (error) {
    admission.release('prefill', turn.turnId)
    throw error
  }
}

/** A session's turn, ready to be forwarded. */
export interface AttachedTurn {
  readonly presence: KvPresence
  readonly splice: string | undefined
  readonly ticket: TurnTicket
}

/** What attaching needs to know of a turn. */
export interface TurnToAttach {
  readonly session: SessionKey
  readonly tenant: TenantKey
  readonly model: string
  readonly turnId: string
  readonly pod: string
  readonly kv: StoredKv | undefined
  /** Why nothing is stored. */
  readonly kvNote?: string | undefined
  readonly expiry: TurnExpiry
  /** An expired session's turn: it must not meet KV of the session's earlier life. */
  readonly startsAnew?: boolean
  readonly createdAtMs?: number | undefined
  readonly contentKey: () => ContentKey
  /** The request that creates the session. */
  readonly opening?: KvOpening
  /** What its route was chosen by. */
  readonly routing: RoutingInput
}

/**
 * Brings the session's KV into the pod, within the budget, and writes the ticket; where turns are limited, not before the turn may run.
 * @throws GatewayError `rate_limit_exceeded`
 * @throws ClientLeftError
 */
export const attachTurn = (parts: TurnParts, turn: TurnToAttach, scope: RequestScope): Promise<AttachedTurn> => {
  if (parts.admission === undefined) return attachNow(parts, turn, scope)
  const laterMs = parts.loadPolicy.budgetMs(turn.model, turn.kv?.tokens)
  return startAdmitted(parts.admission, turn, { laterMs, scope }, () => attachNow(parts, turn, scope))
}

const attachNow = async (parts: TurnParts, turn: TurnToAttach, scope: RequestScope): Promise<AttachedTurn> => {
  const kvTurn: KvTurn = {
    session: turn.session,
    tenant: turn.tenant,
    model: turn.model,
    turnId: turn.turnId,
    pod: turn.pod,
    startsAnew: turn.startsAnew ?? false,
    kvNote: turn.kvNote,
    createdAtMs: turn.createdAtMs,
    contentKey: turn.contentKey,
    opening: turn.opening,
    mayLoad: turn.kv === undefined || parts.loadPolicy.isWorthwhile(turn.model, turn.kv),
  }
  const budgetMs = parts.loadPolicy.budgetMs(turn.model, turn.kv?.tokens)
  const startedMs = performance.now()
  // Counted from here on, so that routing sees the turns that are still loading.
  parts.pods.turnStarted(turn.pod, turn.turnId)
  const isInstant = parts.connector.isInstant?.(kvTurn, turn.kv) === true
  const promptTokens = turn.routing.promptTokens ?? 0
  parts.forecast.routed(turn, turn.routing)
  const attached = await (isInstant
    ? parts.connector.attach(kvTurn, turn.kv, unlimited)
    : withBudget({ budgetMs, scope }, (signal) => bring(parts, turn, kvTurn, { budgetMs, signal })))
  const { presence, fields, claim } = attached
  if (!isInstant) parts.forecast.loadEnded(turn, loadedOf(presence, turn.kv))
  if (scope.isAbandoned()) {
    parts.pods.turnEnded(turn.pod, turn.turnId)
    parts.forecast.ended(turn, { how: 'abandoned', answer: undefined })
    if (claim !== settledClaim)
      await withinLimit(detachTimeoutMs, (signal) => parts.connector.detach(kvTurn, claim, signal))
    throw new ClientLeftError()
  }
  parts.events.attached(presence, performance.now() - startedMs)
  const presentTokens = presentTokensOf(presence)
  parts.forecast.forwarded(turn, promptTokens - presentTokens)
  if (presence.kind === 'missing' && turn.kv !== undefined) {
    const drop = parts.store.dropKv({ key: turn.session, artefactId: turn.kv.artefactId, reason: 'kv_missing' })
    drop.catch((error: unknown) => parts.events.storeFault('drop_kv', error))
  }
  return {
    presence,
    splice: spliceOf(fields),
    ticket: {
      turnId: turn.turnId,
      pod: turn.pod,
      session: {
        key: turn.session,
        tenant: turn.tenant,
        model: turn.model,
        expiry: turn.expiry,
        claim: claim === settledClaim ? undefined : claim,
      },
    },
  }
}

/**
 * A turn that has no session to use or to update: it is only counted, and kept apart from the KV of sessions. Its ticket lets Envoy add the
 * response headers and tell of its end.
 */
export const startPlainTurn = (
  parts: Pick<TurnParts, 'pods' | 'connector'>,
  turn: { readonly turnId: string; readonly pod: string; readonly tenant: TenantKey },
  scope: RequestScope,
): { readonly ticket: TurnTicket; readonly splice: string | undefined } => {
  const { turnId, pod, tenant } = turn
  if (!scope.isAbandoned()) parts.pods.turnStarted(pod, turnId)
  return {
    ticket: { turnId, pod, session: undefined },
    splice: spliceOf(parts.connector.fieldsWithoutSession(tenant)),
  }
}

/** Gives the lease of a turn back that is not forwarded after all. Never rejects: a lease that stays runs out by itself. */
export const abandonTurn = async (
  parts: Pick<TurnParts, 'store' | 'events'>,
  turn: { readonly key: SessionKey; readonly turnId: string },
): Promise<void> => {
  try {
    await parts.store.abandon(turn)
  } catch (error) {
    parts.events.storeFault('abandon', error)
  }
}

/** Attaches the turn; a load that has to be admitted first is not under way before. */
const bring = (
  parts: Pick<TurnParts, 'admission' | 'connector'>,
  turn: TurnToAttach,
  kvTurn: KvTurn,
  limits: { readonly budgetMs: number; readonly signal: AbortSignal },
): Promise<AttachOutcome> => {
  const bytes = bytesToLoad(kvTurn, turn.kv, turn.routing)
  if (parts.admission === undefined || bytes <= 0) {
    return parts.connector.attach(kvTurn, turn.kv, limits.signal)
  }
  return attachWithAdmittedLoad(parts.admission, turn, limits, ({ mayLoad }) => {
    return parts.connector.attach(mayLoad ? kvTurn : { ...kvTurn, mayLoad }, turn.kv, limits.signal)
  })
}

/** Body fields as JSON members without the braces. */
const spliceOf = (fields: Readonly<Record<string, EngineField>>): string | undefined =>
  Object.keys(fields).length === 0 ? undefined : JSON.stringify(fields).slice(1, -1)

/** What the load of a turn will bring, if there is one: what its pod probably lacks of what is stored. */
const bytesToLoad = (turn: KvTurn, kv: StoredKv | undefined, routing: RoutingInput): number => {
  if (kv === undefined || turn.mayLoad === false || kv.tokens <= 0) return 0
  const lacking = Math.max(0, kv.tokens - (routing.residentTokens?.get(turn.pod) ?? 0))
  return (kv.bytes * lacking) / kv.tokens
}

/** Only a load that brought all of it tells what a byte costs. */
const loadedOf = (
  presence: KvPresence,
  kv: StoredKv | undefined,
): { readonly bytes: number; readonly loadMs: number } | undefined =>
  presence.kind === 'loaded' && kv !== undefined && presence.tokens >= kv.tokens
    ? { bytes: kv.bytes, loadMs: presence.loadMs }
    : undefined

const presentTokensOf = (presence: KvPresence): number =>
  presence.kind === 'resident' || presence.kind === 'loaded' || presence.kind === 'on-demand' ? presence.tokens : 0
