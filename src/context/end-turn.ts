import { ExponentialBackoff, handleType, retry } from 'cockatiel'
import { LRUCache } from 'lru-cache'
import type { Admission } from '../admission/admission.ts'
import { withinLimit } from '../async/deadline.ts'
import type { KvConnector, KvTurn, OffloadOutcome } from '../kvcache/kv-connector.ts'
import type { PodSource } from '../routing/pod.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionRecord } from '../sessions/session-record.ts'
import { type CompleteOutcome, type SessionStore, StoreUnavailableError } from '../sessions/session-store.ts'
import type { ContextCacheManager, TurnEnd, TurnUsage } from './context-cache-manager.ts'
import { type ContextEvents, reportFault, type TurnOutcome } from './context-events.ts'
import { decodeTicket, type SessionTicket, type TurnTicket } from './turn-ticket.ts'

export interface EndTurnParts {
  readonly store: SessionStore & RemovalQueue
  readonly pods: Pick<PodSource, 'turnEnded' | 'markUnhealthy'>
  readonly connector: KvConnector
  readonly predictor: TtftPredictor
  readonly events: ContextEvents
  /** Where turns are limited: receives what a turn held. */
  readonly admission?: Pick<Admission, 'release'> | undefined
  /** Starts the removal of what a turn left. */
  readonly triggerSweep: () => void
}

export interface EndTurnSettings {
  /** An artefact that was announced and not committed is removed after this time. Longer than an offload takes. */
  readonly announceGraceMs: number
  /** Time limit of an offload. */
  readonly offloadTimeoutMs: number
}

/** Turns from the decision to their end. Each ends once in this process, whatever is reported of it, in whatever order. */
export interface ActiveTurns extends Pick<ContextCacheManager, 'endTurn' | 'clientDisconnected'> {
  /** Records a turn that is forwarded. */
  started(ticket: TurnTicket): void
  /**
   * Counts a turn whose response came from the cache: no pod serves it, so that the session keeps its pod and its KV. One try, since
   * the client waits. Never rejects.
   */
  completeCached(ticket: TurnTicket & { readonly session: SessionTicket }, usage: TurnUsage | undefined): Promise<void>
  /** Resolves when no end of a turn is being processed. */
  drain: () => Promise<void>
}

/** More turns than run at once. Turns whose end is reported to another process stay until they are the oldest. */
const maxActive = 20_000
/** Covers the turns that end while Envoy waits to send an unanswered batch of its access log again. */
const maxEnded = 50_000

export const createActiveTurns = (parts: EndTurnParts, settings: EndTurnSettings): ActiveTurns => {
  const { complete, end } = createEndTurn(parts, settings)
  const active = new LRUCache<string, TurnTicket>({ max: maxActive })
  /** Ids of turns that have ended, and of requests whose client disconnected before the decision. */
  const ended = new LRUCache<string, true>({ max: maxEnded })
  const ending = new Set<Promise<void>>()

  const endOnce = async (ticket: TurnTicket, turn: TurnEnd): Promise<void> => {
    active.delete(ticket.turnId)
    ended.set(ticket.turnId, true)
    const work = end(ticket, turn)
    ending.add(work)
    await work
    ending.delete(work)
  }

  return {
    started: (ticket) => {
      if (ended.has(ticket.turnId)) void endOnce(ticket, disconnected)
      else active.set(ticket.turnId, ticket)
    },
    endTurn: async (turn) => {
      const ticket = decodeTicket(turn.ticket)
      if (ticket !== undefined && !ended.has(ticket.turnId)) await endOnce(ticket, turn)
    },
    // Envoy dropped the request before it read the decision: its access log has no ticket, but the key of the request, which is the turn's id.
    clientDisconnected: async (turnId) => {
      const ticket = active.get(turnId)
      if (ticket === undefined) ended.set(turnId, true)
      else await endOnce(ticket, disconnected)
    },
    completeCached: async (ticket, usage) => {
      try {
        await complete(ticket, ticket.session, { pod: ticket.pod, usage })
      } catch (error) {
        // The turn's lease expires.
        reportFault(parts.events, 'complete', error)
      }
    },
    drain: async () => {
      while (ending.size > 0) await Promise.all(ending)
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

const createEndTurn = (parts: EndTurnParts, settings: EndTurnSettings) => {
  const { store, connector, predictor, events } = parts
  /** The store may be unavailable for a moment when a turn ends; the turn's lease gives the time to try again. */
  const storeRetry = retry(handleType(StoreUnavailableError), {
    maxAttempts: 8,
    backoff: new ExponentialBackoff({ initialDelay: 50, maxDelay: 5000 }),
  })

  const complete = async (
    { turnId }: TurnTicket,
    { key, tenant, expiry }: SessionTicket,
    { pod, usage }: { readonly pod: string; readonly usage: TurnUsage | undefined },
  ): Promise<CompleteOutcome> => {
    const { promptTokens: prompt = 0, outputTokens: output = 0, cachedTokens: cached = 0 } = usage ?? {}
    const outcome = await store.complete({ key, tenant, turnId, pod, usage: { prompt, output, cached }, expiry })
    events.turnEnded(outcome.kind, usage)
    return outcome
  }

  const endCompleted = async (ticket: TurnTicket, session: SessionTicket, turn: TurnEnd): Promise<void> => {
    const pod = turn.servedBy ?? ticket.pod
    const { usage } = turn
    let outcome: CompleteOutcome
    try {
      outcome = await storeRetry.execute(() => complete(ticket, session, { pod, usage }))
    } catch (error) {
      await releaseClaim(ticket, session)
      throw error
    }
    if (outcome.kind === 'gone') {
      await releaseClaim(ticket, session)
      parts.triggerSweep()
      return
    }
    if (usage !== undefined && usage.promptTokens > 0)
      predictor.kept(session.key, pod, usage.promptTokens + usage.outputTokens)
    if (session.claim !== undefined) await offload(kvTurnOf(ticket, session, pod), session.claim, usage, outcome.record)
  }

  const endFailed = async (ticket: TurnTicket, session: SessionTicket, turn: TurnEnd): Promise<void> => {
    events.turnEnded(failureOf(turn), turn.usage)
    // The pod first: the store may be unavailable for longer.
    await releaseClaim(ticket, session)
    await storeRetry.execute(() => store.abandon({ key: session.key, turnId: ticket.turnId }))
    parts.triggerSweep()
  }

  /** A turn's claim on its pod never outlives the turn. */
  const releaseClaim = async (ticket: TurnTicket, session: SessionTicket): Promise<void> => {
    const { claim } = session
    if (claim === undefined) return
    const kvTurn = kvTurnOf(ticket, session, ticket.pod)
    await withinLimit(settings.offloadTimeoutMs, (signal) => connector.detach(kvTurn, claim, signal))
  }

  const offload = async (
    kvTurn: KvTurn,
    claim: string,
    usage: TurnUsage | undefined,
    record: SessionRecord,
  ): Promise<void> => {
    const startedMs = performance.now()
    const outcome = await withinLimit(settings.offloadTimeoutMs, (signal) =>
      connector.offload({
        turn: kvTurn,
        claim,
        totalTokens: usage === undefined ? undefined : usage.promptTokens + usage.outputTokens,
        promptTokens: usage?.promptTokens,
        announce: (artefact) =>
          storeRetry.execute(() =>
            store.announce({ ...artefact, session: kvTurn.session, graceMs: settings.announceGraceMs }),
          ),
        signal,
      }),
    )
    events.offloaded(outcome, performance.now() - startedMs)
    await storeRetry.execute(() => recordOffload(kvTurn, record, outcome))
  }

  const recordOffload = async ({ session: key }: KvTurn, record: SessionRecord, outcome: OffloadOutcome) => {
    switch (outcome.kind) {
      case 'stored': {
        const { artefactId, payload, tokens, bytes } = outcome
        await store.commitKv({ key, kv: { artefactId, payload, tokens, bytes, turn: record.turns } })
        return
      }
      case 'none':
        if (record.kvNote !== outcome.reason) await store.noteKv({ key, reason: outcome.reason })
        return
      case 'superseded':
      case 'unchanged':
        return
    }
  }

  /** Never rejects. */
  const end = async (ticket: TurnTicket, turn: TurnEnd): Promise<void> => {
    parts.pods.turnEnded(ticket.pod, ticket.turnId)
    parts.admission?.release('prefill', ticket.turnId)
    reportPods(parts, ticket, turn)
    const isGood = turn.complete && turn.status >= 200 && turn.status < 300
    const { session } = ticket
    if (session === undefined) {
      events.turnEnded(isGood ? 'completed' : failureOf(turn), turn.usage)
      return
    }
    endPrediction(predictor, ticket, session, turn)
    try {
      await (isGood ? endCompleted : endFailed)(ticket, session, turn)
    } catch (error) {
      // The turn's lease expires, and the reaper removes what the turn left.
      reportFault(events, 'end_turn', error)
    }
  }

  return { complete, end }
}

const failureOf = (turn: TurnEnd): TurnOutcome => {
  if (turn.clientDisconnected) return 'client_left'
  if (turn.upstreamFailed) return 'upstream_failed'
  return turn.status >= 200 && turn.status < 300 ? 'incomplete' : 'engine_error'
}

const kvTurnOf = ({ turnId }: TurnTicket, { key, tenant, model }: SessionTicket, pod: string): KvTurn => ({
  session: key,
  tenant,
  model,
  turnId,
  pod,
})

/** A turn that another pod served, or whose upstream failed, shows that the chosen pod is unhealthy. */
const reportPods = ({ pods }: Pick<EndTurnParts, 'pods'>, { pod }: TurnTicket, turn: TurnEnd): void => {
  const { servedBy, upstreamFailed } = turn
  const servedElsewhere = servedBy !== undefined && servedBy !== pod
  if (servedElsewhere || (upstreamFailed && !turn.clientDisconnected)) pods.markUnhealthy(pod)
  if (servedElsewhere && upstreamFailed) pods.markUnhealthy(servedBy)
}

const endPrediction = (
  predictor: TtftPredictor,
  { turnId, pod }: TurnTicket,
  { model }: SessionTicket,
  { status, usage, ttfbMs, clientDisconnected }: TurnEnd,
): void =>
  predictor.ended(
    { turnId, pod, model },
    {
      how: clientDisconnected || ttfbMs === undefined ? 'abandoned' : 'done',
      response:
        status === 200 && usage !== undefined && ttfbMs !== undefined
          ? { computedTokens: usage.promptTokens - usage.cachedTokens, ttfbMs }
          : undefined,
    },
  )
