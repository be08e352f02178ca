import type { EngineFields, KvPresence } from '../kvcache/kv-connector.ts'
import type { TenantKey } from '../sessions/session-record.ts'
import type { OwnedSession } from '../sessions/session-store.ts'
import { admitTurn, RequestCancelledError } from './admit-turn.ts'
import type { ForwardDecision, RequestScope } from './context-cache-manager.ts'
import { reportFault } from './context-events.ts'
import type { Pool } from './pools.ts'
import { loadBudgetMs, prepareKv } from './prepare-kv.ts'
import type { Route } from './route-turn.ts'
import type { SessionTurn, TurnParts } from './session-turn.ts'
import type { TurnTicket } from './turn-ticket.ts'

/**
 * Waits for room and resources, brings the session's KV into the pod, and decides, without response headers.
 * @throws GatewayError `rate_limit_exceeded`, RequestCancelledError
 */
export const startSessionTurn = async (
  parts: TurnParts,
  turn: SessionTurn,
  scope: RequestScope,
): Promise<{ readonly presence: KvPresence; readonly forward: ForwardDecision<TurnTicket> }> => {
  const { turnId, tenant, session, route: first } = turn
  const budgetMsAt = ({ pool, pod, input }: Route): number => {
    // What a turn left in the pod may be on its way to the store: it is worth as long a wait as what lies there.
    const tokens = Math.max(session.kv?.tokens ?? 0, input.residentTokens?.get(pod) ?? 0)
    return loadBudgetMs(pool, session.model, { tokens, backlogMs: pool.predictor.backlogMs(pod) })
  }
  const asked = { turnId, tenant, route: first, seeksRoom: true, loadMs: first.pool.maxLoadMs }
  const startedMs = performance.now()
  const prepared = await admitTurn(parts, asked, scope, (route, decision) =>
    prepareKv(parts, { ...turn, route }, { budgetMs: budgetMsAt(route), decision }),
  )
  const { route, presence, promised, fields, claim, preparedMs } = prepared
  const { key, model } = session
  return {
    presence,
    forward: forwardTo(route, fields, {
      turnId,
      pool: route.pool.name,
      pod: route.pod,
      preparedMs: Math.round(preparedMs),
      waitedMs: Math.round(performance.now() - startedMs - preparedMs),
      session: { key, tenant, model, expiry: turn.expiry, claim, promised },
    }),
  }
}

/**
 * Forwards a turn without a session: only counted, and isolated from sessions' KV, per tenant or (undefined) for all.
 * @throws GatewayError `rate_limit_exceeded`, RequestCancelledError
 */
export const startPlainTurn = (
  parts: TurnParts,
  turn: { readonly turnId: string; readonly route: Route; readonly tenant: TenantKey | undefined },
  scope: RequestScope,
): Promise<ForwardDecision<TurnTicket>> => {
  const { turnId, tenant } = turn
  return admitTurn(parts, { ...turn, seeksRoom: false, loadMs: 0 }, scope, async (route) => {
    if (scope.signal.aborted) throw new RequestCancelledError()
    const { pool, pod, input } = route
    const { model } = input
    const accept = (): ForwardDecision<TurnTicket> => {
      pool.pods.turnStarted(pod, turnId)
      if (model !== undefined) pool.predictor.routed({ turnId, pod, model }, input)
      const fields = tenant === undefined ? pool.kv.constants : pool.kv.isolation(tenant)
      return forwardTo(route, fields, { turnId, pool: pool.name, pod, model })
    }
    return { hasRoom: true, accept, withdraw: async () => {} }
  })
}

/** Releases the lease of a turn that is not forwarded. Never rejects: a lease that stays expires. */
export const abandonTurn = async (
  parts: Pick<TurnParts, 'store' | 'events'>,
  { key, tenant, turnId }: OwnedSession & { readonly turnId: string },
): Promise<void> => {
  try {
    await parts.store.abandon({ key, tenant, turnId })
  } catch (error) {
    reportFault(parts.events, 'abandon', error)
  }
}

const forwardTo = (route: Route, fields: EngineFields, ticket: TurnTicket): ForwardDecision<TurnTicket> => ({
  kind: 'forward',
  destinations: route.destinations,
  path: undefined,
  requestHeaders: { ...poolHeader(route.pool), ...turnHeader(route, ticket) },
  // JSON members without the braces.
  splice: Object.keys(fields).length === 0 ? undefined : JSON.stringify(fields).slice(1, -1),
  expectModel: undefined,
  responseHeaders: {},
  ticket,
})

/** Below `/v1/messages` vLLM has no member for a turn's name, and takes this header for it, also a client's own. */
const turnHeader = ({ isMessages }: Route, { session, turnId }: TurnTicket): Readonly<Record<string, string>> =>
  isMessages && session !== undefined ? { 'x-session-id': turnId } : {}

/**
 * The decision with a turn's cache status and the kind of name that chose its session: for the client in headers, for the
 * log and metrics in the ticket.
 */
export const withStatus = (
  forward: ForwardDecision<TurnTicket>,
  status: { readonly cacheStatus: string } & Pick<TurnTicket, 'namedBy'>,
  headers: Readonly<Record<string, string>> = {},
): ForwardDecision<TurnTicket> => ({
  ...forward,
  responseHeaders: { ...headers, 'x-context-cache': status.cacheStatus },
  ticket: forward.ticket && { ...forward.ticket, ...status },
})

/** Name of the pool that a gateway without `pools` has. */
const defaultPool = 'default'

/** Names the cluster of a pool other than the default one. It means nothing unless Envoy has one for each pool. */
export const poolHeader = ({ name }: Pool): Readonly<Record<string, string>> =>
  name === defaultPool ? {} : { 'x-context-pool': name }
