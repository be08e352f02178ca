import type { Admission } from '../../src/admission/admission.ts'
import type {
  ContextCacheManager,
  Decision,
  EndedTurn,
  ForwardDecision,
} from '../../src/context/context-cache-manager.ts'
import { createContextCacheManager } from '../../src/context/create-context-cache-manager.ts'
import { createPools } from '../../src/context/pools.ts'
import type { Reaper } from '../../src/context/reaper.ts'
import type { ResponseCacheParts } from '../../src/context/response-cache-handler.ts'
import { sessionKeyOf } from '../../src/context/session-id.ts'
import { createClaimSeal } from '../../src/kvcache/claim-seal.ts'
import { createKvCache } from '../../src/kvcache/kv-cache.ts'
import type { KvTurn } from '../../src/kvcache/kv-connector.ts'
import { createMemoryResponseCache } from '../../src/responsecache/response-cache.ts'
import { createResponseCaptures } from '../../src/responsecache/response-capture.ts'
import type { HistoryParts } from '../../src/responses/answer-requests.ts'
import { type CostModel, createCostModel } from '../../src/routing/cost-model.ts'
import { createPolicies, type PolicyName } from '../../src/routing/policies.ts'
import { createRouter } from '../../src/routing/router.ts'
import { createTtftPredictor, type TtftPredictor } from '../../src/routing/ttft-predictor.ts'
import { createMemorySessionStore } from '../../src/sessions/memory/create-memory-session-store.ts'
import type { SessionKey } from '../../src/sessions/session-record.ts'
import { type BreakableStore, createBreakableStore } from './breakable-store.ts'
import { answerBody, forwarded, sessionIdOf, tenantSecret } from './decisions.ts'
import { gatewayRequest, type RequestSketch, type WatchedScope, watchedScope } from './gateway-request.ts'
import { type KvBlock, MemoryFleet } from './memory-fleet.ts'
import { createMemoryKvConnector, type MemoryKvConnector } from './memory-kv-connector.ts'
import { admissionBy, planOf } from './planned-admission.ts'
import { createRecordedEvents, type RecordedEvents } from './recorded-events.ts'
import { createStaticPods, type StaticPods } from './static-pods.ts'

export const podA = '127.0.0.1:19101'
export const podB = '127.0.0.1:19102'

export interface GatewaySettings {
  /** Another gateway process, whose session store, engines and clock this one shares. */
  readonly beside?: ContextGateway
  readonly pods?: readonly string[]
  /** Default: the gateway's default policy. */
  readonly policy?: PolicyName
  readonly poolName?: string
  readonly sliding?: boolean
  readonly unknownSession?: 'miss' | 'reject'
  /** Headers and members of the body that may name a session. Default: none. */
  readonly names?: readonly string[]
  readonly maxNamedPerTenant?: number
  readonly sessionsPerPod?: number
  /** How long Envoy waits for a decision, and so a turn for room. Default 30,000; 0: it does not wait. */
  readonly messageTimeoutMs?: number
  /** Wraps the connector. */
  readonly wrapConnector?: (connector: MemoryKvConnector) => MemoryKvConnector
  /** What computing a token is taken to cost before anything was learnt. */
  readonly msPerToken?: number
  readonly maxLoadMs?: number
  readonly batchSize?: number
  readonly removalLeaseMs?: number
  /** Left out: turns require no resources. */
  readonly admission?: Admission
  readonly sweepIntervalMs?: number
  /** Responses and conversations that are kept. Left out: none are. */
  readonly responses?: HistoryParts
  /** Models that may be answered from the response cache. Left out: it is off. */
  readonly cachedModels?: readonly string[]
}

export interface SentRequest extends RequestSketch {
  /** Sent as JSON, or as it is when it is a Buffer; left out: no body. */
  readonly body?: unknown
  /** The caller's API key. */
  readonly as?: string
}

/** How an engine answered a turn; what is left out went well. */
export interface TurnAnswer {
  /** The pod that served; the first destination unless said otherwise. `null`: none did. */
  readonly servedBy?: string | null
  readonly promptTokens?: number
  readonly withoutUsage?: boolean
  /** Told instead of what the pod reused; `untold`: the response does not tell. */
  readonly cachedTokens?: number | 'untold'
  readonly status?: number
  readonly complete?: boolean
  readonly clientDisconnected?: boolean
  readonly upstreamFailed?: boolean
  readonly ttfbMs?: number
}

/** The context room with real parts around it, and a clock that stands still. */
export interface ContextGateway {
  readonly service: ContextCacheManager
  readonly store: BreakableStore
  readonly fleet: MemoryFleet
  readonly connector: MemoryKvConnector
  readonly pods: StaticPods
  readonly events: RecordedEvents
  readonly estimate: CostModel
  readonly predictor: TtftPredictor
  readonly reaper: Reaper
  drain(): Promise<void>
  nowMs(): number
  advance(seconds: number): void
  /** A whole sweep of the reaper, after so many seconds. */
  sweep(afterSeconds?: number): Promise<void>
  /** Records, queued removals, KV and claims of any session. {@link nothingLeft}: none of these. */
  leftovers(): Promise<typeof nothingLeft>
  /** Takes a request through headers and, if asked for, body. */
  send(request: SentRequest, scope?: WatchedScope): Promise<Decision>
  /** An engine answers what was forwarded. Returns the entry of Envoy's access log; undefined: there is no ticket. */
  answer(forward: ForwardDecision, answer?: TurnAnswer): EndedTurn | undefined
  /** An engine answers what was forwarded, and the gateway receives the end of the turn. */
  serve(forward: ForwardDecision, answer?: TurnAnswer): Promise<void>
  /** Creates a session with `POST /v1/context` and serves its first turn. */
  create(
    request?: Partial<SentRequest>,
    answer?: TurnAnswer,
  ): Promise<{ readonly id: string; readonly key: SessionKey }>
  /** The forwarded first turn of a new session, which is not served yet. */
  beginCreate(): Promise<ForwardDecision>
  /** The session as `GET /v1/context/{id}` shows it. */
  view(id: string): Promise<unknown>
  remove(id: string): Promise<Decision>
  /** A turn of a session that is not served yet. */
  use(id: string, request?: Partial<SentRequest>, scope?: WatchedScope): Promise<ForwardDecision>
}

const outputTokens = 20
/** Of a turn. */
const leaseMs = 600_000
/** Of the gateway's own clock. */
const orphanIntervalMs = 30_000

export const createContextGateway = (settings: GatewaySettings = {}): ContextGateway => {
  const addresses = settings.pods ?? [podA, podB]
  let ownNowMs = Date.parse('2025-08-01T00:00:00Z')
  const nowMs = () => settings.beside?.nowMs() ?? ownNowMs
  const pods = createStaticPods(addresses)
  const fleet = settings.beside?.fleet ?? new MemoryFleet()
  const admission =
    settings.admission ?? admissionBy(planOf({}, addresses), { messageTimeoutMs: settings.messageTimeoutMs ?? 30_000 })
  const roomAt = (pod: string): void => admission.roomAt(pod)
  const ownConnector = () =>
    createMemoryKvConnector({ fleet, sessionsPerPod: settings.sessionsPerPod ?? 4, bytesPerToken: 100, roomAt })
  const { wrapConnector = (wrapped) => wrapped } = settings
  const connector = settings.beside?.connector ?? wrapConnector(ownConnector())
  const recorded = createRecordedEvents()
  const { events } = recorded
  const estimate = createCostModel({ initialMsPerToken: settings.msPerToken ?? 10 })
  const predictor = createTtftPredictor({
    source: pods,
    costs: estimate,
    nowMs: () => performance.now(),
    maxSessions: 1000,
    turnLeaseMs: leaseMs,
  })
  const store = settings.beside?.store ?? createBreakableStore(createMemorySessionStore({ nowMs }))
  const stickiness = { factor: 1000, margin: 1000 }
  const { manager, reaper, drain } = createContextCacheManager(
    {
      store,
      pools: createPools([
        {
          name: settings.poolName ?? 'default',
          serves: () => 'listed',
          router: createRouter({
            source: predictor,
            stickiness,
            policies: createPolicies({
              defaultPolicy: settings.policy ?? 'predicted-ttft',
              stickiness,
              costs: estimate,
            }),
          }),
          pods,
          kv: createKvCache(connector, {
            name: 'memory',
            pool: 'default',
            seal: createClaimSeal(tenantSecret),
            log: { debug: () => {}, info: () => {}, warn: () => {} },
          }),
          costs: estimate,
          predictor,
          maxLoadMs: settings.maxLoadMs ?? 10_000,
        },
      ]),
      events,
      admission,
      responses: settings.responses,
      responseCache: settings.cachedModels === undefined ? undefined : createResponseCaching(settings.cachedModels),
      nowMs,
    },
    {
      minTtlSeconds: 10,
      maxTtlSeconds: 86_400,
      defaultTtlSeconds: 3600,
      maxJsonDepth: 64,
      maxJsonKeys: 1000,
      leaseMs,
      secret: tenantSecret,
      principalHeader: undefined,
      sliding: settings.sliding ?? false,
      unknownSession: settings.unknownSession ?? 'miss',
      implicit: { names: settings.names ?? [], ttlSeconds: 3600, maxPerTenant: settings.maxNamedPerTenant ?? 1000 },
      offloadTimeoutMs: 5000,
      announceGraceMs: 10_000,
      deleteWaitMs: 5000,
      reaper: {
        intervalMs: settings.sweepIntervalMs ?? 60_000,
        orphanIntervalMs,
        batchSize: settings.batchSize ?? 100,
        removalLeaseMs: settings.removalLeaseMs ?? 30_000,
        retryDelayMs: 200,
      },
    },
  )

  const send: ContextGateway['send'] = async (request, scope = watchedScope()) => {
    const decision = await manager.onHeaders(
      gatewayRequest({
        ...request,
        headers: {
          authorization: `Bearer ${request.as ?? 'key-a'}`,
          'content-type': 'application/json',
          ...request.headers,
        },
        endOfStream: request.body === undefined,
      }),
      scope,
    )
    if (decision.kind !== 'need-body') return decision
    return decision.decide(
      Buffer.isBuffer(request.body) ? request.body : Buffer.from(JSON.stringify(request.body)),
      scope,
    )
  }

  const answer: ContextGateway['answer'] = (forward, told = {}) => {
    const pod = told.servedBy === undefined ? forward.destinations[0] : told.servedBy
    const promptTokens = told.promptTokens ?? 1000
    const cachedTokens =
      pod === null ? 0 : fleet.compute(pod, { session: splicedSession(forward), promptTokens, outputTokens })
    if (forward.ticket === undefined) return undefined
    const cached = told.cachedTokens ?? cachedTokens
    const usage = { promptTokens, outputTokens, ...(cached === 'untold' ? {} : { cachedTokens: cached }) }
    return {
      ticket: forward.ticket,
      status: told.status ?? 200,
      complete: told.complete ?? true,
      clientDisconnected: told.clientDisconnected ?? false,
      upstreamFailed: told.upstreamFailed ?? false,
      servedBy: pod ?? undefined,
      usage: told.withoutUsage === true ? undefined : usage,
      ttfbMs: told.ttfbMs,
    }
  }

  const serve: ContextGateway['serve'] = async (forward, told) => {
    const ended = answer(forward, told)
    if (ended !== undefined) await manager.endTurn(ended)
  }

  const advance = (seconds: number): void => {
    ownNowMs += seconds * 1000
  }

  return {
    service: manager,
    store,
    fleet,
    connector,
    pods,
    events: recorded,
    estimate,
    predictor,
    reaper,
    drain,
    nowMs,
    advance,
    sweep: (afterSeconds = 0) => {
      advance(afterSeconds)
      return reaper.sweepAndWait()
    },
    leftovers: async () => ({ ...(await store.counts()), kv: fleet.everything(), claims: connector.claims() }),
    send,
    answer,
    serve,
    create: async (request = {}, told = {}) => {
      const forward = forwarded(await send({ path: '/v1/context', body: promptBody, ...request }))
      await serve(forward, told)
      const id = sessionIdOf(forward)
      return { id, key: sessionKeyOf(id) }
    },
    beginCreate: async () => forwarded(await send({ path: '/v1/context', body: promptBody })),
    view: async (id) => answerBody(await send({ method: 'GET', path: `/v1/context/${id}` })),
    remove: (id) => send({ method: 'DELETE', path: `/v1/context/${id}` }),
    use: async (id, request = {}, scope = watchedScope()) =>
      forwarded(
        await send(
          {
            path: '/v1/completions',
            body: promptBody,
            ...request,
            headers: { 'x-session-id': id, ...request.headers },
          },
          scope,
        ),
      ),
  }
}

/** A gateway with one session, whose first turn has been served. */
export const gatewayWithSession = async (
  settings: GatewaySettings = {},
  request: Partial<SentRequest> = {},
  answer: TurnAnswer = {},
) => {
  const gateway = createContextGateway(settings)
  return { gateway, ...(await gateway.create(request, answer)) }
}

export const nothingLeft: {
  readonly sessions: number
  readonly removals: number
  readonly kv: readonly KvBlock[]
  readonly claims: readonly KvTurn[]
} = { sessions: 0, removals: 0, kv: [], claims: [] }

const createResponseCaching = (models: readonly string[]): ResponseCacheParts => {
  const maxEntryBytes = 10_000
  const cache = createMemoryResponseCache({ maxBytes: 100_000, maxEntryBytes, onEvicted: () => {} })
  const { begin: beginCapture } = createResponseCaptures({ cache, maxBytes: 100_000, maxEntryBytes })
  return { cache, beginCapture, maxEntryBytes, models, forget: (tenant) => cache.forget(tenant), onLookup: () => {} }
}

export const promptBody = { model: 'm', prompt: 'Say this is a test' }

/** What an engine reads of the spliced fields. */
const splicedSession = (forward: ForwardDecision): SessionKey | undefined => {
  const fields: unknown = JSON.parse(`{${forward.splice ?? ''}}`)
  return (fields as { readonly kv_session?: SessionKey }).kv_session
}
