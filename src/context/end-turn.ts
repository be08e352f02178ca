import { ExponentialBackoff, handleType, retry } from 'cockatiel'
import { LRUCache } from 'lru-cache'
import type { Admission } from '../admission/admission.ts'
import { atMostEntries } from '../async/at-most-entries.ts'
import { settledWithin, within } from '../async/deadline.ts'
import { ExpiringMap } from '../async/expiring-map.ts'
import type { KvCache } from '../kvcache/kv-cache.ts'
import type { FinishOutcome, EndedTurn as KvEndedTurn, KvTurn } from '../kvcache/kv-connector.ts'
import type { TokenUsage } from '../openai/usage.ts'
import type { PredictionEnd } from '../routing/ttft-predictor.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionRecord } from '../sessions/session-record.ts'
import { type CompleteOutcome, type SessionStore, StoreUnavailableError } from '../sessions/session-store.ts'
import type { EndedTurn, TurnEnd } from './context-cache-manager.ts'
import { type EndedTurnFacts, reportFault, type TurnOutcome } from './context-events.ts'
import { factsOf } from './ended-turn-facts.ts'
import { listedModel, type Pool } from './pools.ts'
import { isRequestKey, requestKeyOf } from './request-headers.ts'
import type { TurnParts } from './session-turn.ts'
import type { SessionTicket, Tickets, TurnTicket } from './turn-ticket.ts'
import type { TurnTracer } from './turn-tracer.ts'

export interface EndTurnParts extends Pick<TurnParts, 'pools' | 'events' | 'hitCheck'> {
  readonly store: SessionStore & RemovalQueue
  readonly tickets: Pick<Tickets, 'decode'>
  /** Receives what a turn held. */
  readonly admission: Pick<Admission, 'release'>
  /** Starts the removal of what a turn left. */
  readonly triggerSweep: () => void
  /** Default: turns are not followed. */
  readonly tracer?: Pick<TurnTracer, 'end'> | undefined
}

export interface EndTurnSettings {
  /** Lease of a turn. A turn whose end is reported to another process is dropped after this time. */
  readonly leaseMs: number
  /** An artefact that was announced and not committed is removed after this time. Renewed while an offload runs. */
  readonly announceGraceMs: number
  /** An offload takes as long as the engine is busy, and at most this time. */
  readonly offloadTimeoutMs: number
}

type SessionTurnTicket = TurnTicket & { readonly session: SessionTicket }
type CompletedTurn = Extract<CompleteOutcome, { kind: 'completed' }>

interface EndingTurn {
  readonly ticket: SessionTurnTicket
  /** Undefined if the configuration has none of the name any more: then the turn's claim ends with its lease. */
  readonly pool: Pool | undefined
  /** The pod that served it. */
  readonly pod: string
  /** What is known of the end so far. */
  readonly seen: { outcome?: TurnOutcome; offload?: Pick<EndedTurnFacts, 'offload' | 'offloadMs'> }
}

/** More turns than run at once. Turns whose end is reported to another process stay until their lease has ended. */
const maxActive = 20_000
/** Covers the turns that end while Envoy waits to send an unanswered batch of its access log again. */
const maxEnded = 50_000

/** Announcements of one offload in the time after which the first would be out of date. */
const renewalsPerGrace = 3

/** How long a stop waits for a session store that is away, milliseconds. */
const lastTriesMs = 10_000

/** Turns from the decision to their end. Each ends once in this process, whatever is reported of it, in any order. */
export interface ActiveTurns {
  /** Records a turn that is forwarded. */
  started(ticket: TurnTicket): void
  /** Ends the turn that the ticket names, as its access log entry tells. Never rejects. */
  endTurn(turn: EndedTurn): Promise<void>
  /**
   * Ends the turn of a request that Envoy dropped before it read the decision: its log entry has the key, no ticket.
   */
  clientDisconnected(key: string): Promise<void>
  /**
   * Counts a turn whose response came from the cache: no pod serves it, so that the session keeps its pod and its KV.
   * One try, since the client waits. Never rejects.
   */
  completeCached(ticket: SessionTurnTicket, usage: TokenUsage | undefined): Promise<void>
  /** Resolves when no end of a turn is being processed. */
  drain(): Promise<void>
}

export const createActiveTurns = (parts: EndTurnParts, settings: EndTurnSettings): ActiveTurns => {
  const stopping = new AbortController()
  const { complete, end } = createEndTurn(parts, settings, stopping.signal)
  /** By request key. */
  const active = new ExpiringMap<TurnTicket>({ lifetimeMs: settings.leaseMs, maxEntries: maxActive })
  /** Keys of requests whose turn has ended, or whose client disconnected before the decision. */
  const ended = new LRUCache<string, true>(atMostEntries(maxEnded))
  const ending = new Set<Promise<void>>()

  const allEnded = async (): Promise<void> => {
    while (ending.size > 0) await Promise.all(ending)
  }

  const run = async (ticket: TurnTicket, turn: TurnEnd): Promise<void> => {
    const work = parts.tracer === undefined ? end(ticket, turn) : parts.tracer.end(ticket, () => end(ticket, turn))
    ending.add(work)
    await work
    ending.delete(work)
  }

  /** Envoy asks again by the same key where it did not read the decision: that turn of the request ends. */
  const replaceActive = (key: string, { turnId }: TurnTicket): void => {
    const other = active.get(key)
    active.delete(key)
    if (other !== undefined && other.turnId !== turnId) void run(other, disconnected)
  }

  const endOnce = async (ticket: TurnTicket, turn: TurnEnd): Promise<void> => {
    const key = requestKeyOf(ticket.turnId)
    replaceActive(key, ticket)
    ended.set(key, true)
    await run(ticket, turn)
  }

  return {
    started: (ticket) => {
      const key = requestKeyOf(ticket.turnId)
      if (ended.has(key)) {
        void run(ticket, disconnected)
        return
      }
      replaceActive(key, ticket)
      active.set(key, ticket)
    },
    endTurn: async (turn) => {
      const ticket = parts.tickets.decode(turn.ticket)
      if (ticket === undefined) parts.events.ticketRefused()
      else if (!ended.has(requestKeyOf(ticket.turnId))) await endOnce(ticket, turn)
    },
    clientDisconnected: async (given) => {
      if (!isRequestKey(given)) return
      // A part of a text keeps the whole text in memory.
      const key = Buffer.from(given).toString()
      const ticket = active.get(key)
      if (ticket === undefined) ended.set(key, true)
      else await endOnce(ticket, disconnected)
    },
    completeCached: async (ticket, usage) => {
      const completed = complete(ticket, ticket.pod, usage).catch((error: unknown) => {
        // The turn's lease expires.
        reportFault(parts.events, 'complete', error)
        return { kind: 'completed' as const }
      })
      const facts = factsOf(
        { ticket, pool: parts.pools.named(ticket.pool), pod: ticket.pod },
        { status: 200, usage: undefined },
      )
      parts.events.turnEnded((await completed).kind, usage, facts)
    },
    drain: async () => {
      await within(lastTriesMs, allEnded())
      stopping.abort()
      await allEnded()
    },
  }
}

const disconnected: TurnEnd = {
  status: 0,
  complete: false,
  clientDisconnected: true,
  upstreamFailed: false,
  servedBy: undefined,
  usage: undefined,
  ttfbMs: undefined,
}

const createEndTurn = (parts: EndTurnParts, settings: EndTurnSettings, stopping: AbortSignal) => {
  const { store, pools, events } = parts
  const retryStore = (maxAttempts: number) =>
    retry(handleType(StoreUnavailableError), {
      maxAttempts,
      backoff: new ExponentialBackoff({ initialDelay: 50, maxDelay: 5000 }),
    })
  /** Some seconds: a turn may hold its slot meanwhile. */
  const storeRetry = retryStore(8)
  /** More than a minute: nobody reports the end of a turn again, and a session's first turn that is lost loses it. */
  const endRetry = retryStore(24)

  const complete = (ticket: SessionTurnTicket, pod: string, usage: TokenUsage | undefined) => {
    const { key, tenant, expiry } = ticket.session
    const { promptTokens: prompt = 0, outputTokens: output = 0, cachedTokens: cached = 0 } = usage ?? {}
    const tokens = { prompt, output, cached }
    return store.complete({ key, tenant, turnId: ticket.turnId, pod, usage: tokens, expiry })
  }

  const endCompleted = async (ending: EndingTurn, turn: TurnEnd): Promise<void> => {
    judgeHit(parts, ending, turn)
    const { ticket, pool, pod, seen } = ending
    const { usage } = turn
    const { key, claim } = ticket.session
    seen.outcome = 'completed'
    const completed = endRetry.execute(() => complete(ticket, pod, usage), stopping)
    const outcome = await completed.catch(async (error: unknown) => {
      await releaseClaim(ending)
      throw error
    })
    seen.outcome = outcome.kind
    if (outcome.kind === 'gone') {
      await releaseClaim(ending)
      parts.triggerSweep()
      return
    }
    if (usage !== undefined && usage.promptTokens > 0) pool?.predictor.kept(key, pod, totalTokensOf(usage))
    if (pool === undefined || claim === undefined) return
    if (pod !== ticket.pod && pool.pods.pods().every(({ address }) => address !== pod)) {
      // The engine key goes to pods alone, whatever address is reported.
      await releaseClaim({ ...ending, pod: ticket.pod })
      return
    }
    const startedMs = performance.now()
    const { createdAtMs } = outcome.record
    const offloaded = await offload(pool.kv, { ...kvTurnOf(ticket, pod), createdAtMs, claim }, usage)
    const offloadMs = performance.now() - startedMs
    const reason = offloaded.kind === 'none' ? offloaded.reason : offloaded.kind
    seen.offload = { offload: reason, offloadMs: Math.round(offloadMs) }
    events.offloaded(offloaded, offloadMs, pool.name)
    await storeRetry.execute(() => recordOffload(outcome, offloaded))
  }

  const endFailed = async (ending: EndingTurn, turn: TurnEnd): Promise<void> => {
    const { ticket, seen } = ending
    seen.outcome = failureOf(turn)
    // The pod first: the store may be unavailable for longer.
    await releaseClaim(ending)
    const { key, tenant } = ticket.session
    await endRetry.execute(() => store.abandon({ key, tenant, turnId: ticket.turnId }), stopping)
    parts.triggerSweep()
  }

  /** A turn's claim never outlives the turn. */
  const releaseClaim = async ({ ticket, pool, pod }: EndingTurn): Promise<void> => {
    const { claim } = ticket.session
    if (pool === undefined || claim === undefined) return
    const kvTurn = kvTurnOf(ticket, pod)
    const release = (signal: AbortSignal) => pool.kv.release({ ...kvTurn, claim, signal })
    await settledWithin(settings.offloadTimeoutMs, release, () => undefined, stopping)
  }

  const offload = async (
    kv: KvCache,
    turn: KvTurn & Pick<SessionRecord, 'createdAtMs'> & { readonly claim: string },
    usage: TokenUsage | undefined,
  ): Promise<FinishOutcome> => {
    let renewal: NodeJS.Timeout | undefined
    const announce: KvEndedTurn['announce'] = async (artefact) => {
      const write = () => store.announce({ ...artefact, session: turn.session, graceMs: settings.announceGraceMs })
      const renew = (): void => void write().catch((error: unknown) => reportFault(events, 'announce', error))
      await storeRetry.execute(write)
      renewal ??= setInterval(renew, settings.announceGraceMs / renewalsPerGrace).unref()
    }
    const finish = (signal: AbortSignal): Promise<FinishOutcome> =>
      kv.finish({
        ...turn,
        totalTokens: usage === undefined ? undefined : totalTokensOf(usage),
        promptTokens: usage?.promptTokens,
        announce,
        signal,
      })
    const late = { kind: 'none', reason: 'offload_failed', cause: new Error('the offload does not end') } as const
    try {
      return await settledWithin(settings.offloadTimeoutMs, finish, () => late, stopping)
    } finally {
      clearInterval(renewal)
    }
  }

  const recordOffload = async ({ record, isCounted }: CompletedTurn, outcome: FinishOutcome): Promise<void> => {
    const { key, tenant, createdAtMs, turns, kvStatus } = record
    if (outcome.kind === 'stored') {
      const { artefactId, payload, tokens, bytes } = outcome
      // The number of a turn that counted before is not known: its KV never replaces that of another turn.
      const turn = isCounted ? turns : 0
      await store.commitKv({ key, tenant, createdAtMs, kv: { artefactId, payload, tokens, bytes, turn } })
    } else if (outcome.kind === 'none' && isCounted && kvStatus !== outcome.reason) {
      await store.setKvStatus({ key, status: outcome.reason })
    }
  }

  /** Never rejects. */
  const end = async (ticket: TurnTicket, turn: TurnEnd): Promise<void> => {
    const { turnId, session } = ticket
    const pool = pools.named(ticket.pool)
    const pod = turn.servedBy ?? ticket.pod
    pool?.pods.turnEnded(ticket.pod, turnId)
    parts.admission.release('prefill', turnId)
    if (podFailed(turn)) pool?.pods.markUnhealthy(pod)
    const isGood = turn.complete && isSuccess(turn.status)
    const model = session?.model ?? ticket.model
    if (model !== undefined) pool?.predictor.ended({ turnId, pod: ticket.pod, model }, predictionEndOf(turn))
    const seen: EndingTurn['seen'] = {}
    if (session === undefined) seen.outcome = isGood ? 'completed' : failureOf(turn)
    else {
      try {
        await (isGood ? endCompleted : endFailed)({ ticket: { ...ticket, session }, pool, pod, seen }, turn)
      } catch (error) {
        // The turn's lease expires, and the reaper removes what the turn left.
        reportFault(events, 'end_turn', error)
      }
    }
    if (seen.outcome !== undefined)
      events.turnEnded(seen.outcome, turn.usage, { ...factsOf({ ticket, pool, pod }, turn), ...seen.offload })
  }

  return { complete, end }
}

/** Compares what the turn was promised with what its engine reused. A retry at another pod was promised nothing. */
const judgeHit = (
  { hitCheck }: Pick<EndTurnParts, 'hitCheck'>,
  { ticket, pool }: EndingTurn,
  { servedBy, usage }: TurnEnd,
): void => {
  const { pod, session } = ticket
  const { key, tenant, promised } = session
  if (promised === undefined || usage === undefined || servedBy !== pod) return
  const engines = { pool: ticket.pool, model: listedModel(pool, session.model), source: promised.source }
  hitCheck.turnEnded(engines, { pod, session: key, tenant, promised, usage })
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

const failureOf = (turn: TurnEnd): TurnOutcome => {
  if (turn.clientDisconnected) return 'client_left'
  if (turn.upstreamFailed) return 'upstream_failed'
  return isSuccess(turn.status) ? 'incomplete' : 'engine_error'
}

const totalTokensOf = ({ promptTokens, outputTokens }: TokenUsage): number => promptTokens + outputTokens

const kvTurnOf = ({ turnId, session }: SessionTurnTicket, pod: string): KvTurn => {
  const { key, tenant, model } = session
  return { session: key, tenant, model, turnId, pod }
}

/** The pod of the last try failed. One that failed before may have recovered while another one answered. */
const podFailed = ({ upstreamFailed, clientDisconnected }: TurnEnd): boolean => upstreamFailed && !clientDisconnected

/** The first byte of an answer that is no stream comes with its last token: nothing is learnt from it. */
const predictionEndOf = ({ status, usage, ttfbMs, clientDisconnected, isStream }: TurnEnd): PredictionEnd => ({
  how: clientDisconnected || ttfbMs === undefined ? 'abandoned' : 'done',
  response:
    status === 200 && isStream !== false && usage !== undefined && ttfbMs !== undefined
      ? { computedTokens: usage.promptTokens - (usage.cachedTokens ?? 0), ttfbMs }
      : undefined,
})
