import { ExponentialBackoff, handleType, retry } from 'cockatiel'
import type { Admission } from '../admission/admission.ts'
import { withinLimit } from '../async/deadline.ts'
import type { KvConnector, KvTurn, OffloadOutcome } from '../kvcache/kv-connector.ts'
import type { PodSource } from '../routing/pod.ts'
import type { TtftPredictor } from '../routing/ttft-predictor.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionRecord } from '../sessions/session-record.ts'
import { type CompleteOutcome, type SessionStore, StoreUnavailableError } from '../sessions/session-store.ts'
import type { TurnEnd } from './context-cache-manager.ts'
import type { ContextEvents, TurnOutcome } from './context-events.ts'
import type { TurnTicket } from './turn-ticket.ts'

/** Settles a turn whose answer has ended. Never rejects. */
export type EndTurn = (ticket: TurnTicket, turn: TurnEnd) => Promise<void>

export interface EndTurnParts {
  readonly store: SessionStore & RemovalQueue
  readonly pods: Pick<PodSource, 'turnEnded' | 'markUnhealthy'>
  readonly connector: KvConnector
  readonly forecast: TtftPredictor
  readonly events: ContextEvents
  /** Where turns are limited: gets back what a turn held. */
  readonly admission?: Pick<Admission, 'release'> | undefined
  /** Nudges the reaper, when a turn left something to remove. */
  readonly removeSoon: () => void
  /** When an artefact that was announced and never committed is removed. Longer than an offload takes. */
  readonly announceGraceMs: number
  /** How long an offload may take. */
  readonly offloadTimeoutMs: number
}

type SessionTicket = NonNullable<TurnTicket['session']>

/** The store may be away for a moment just when a turn ends; the turn's lease gives us the time. */
const createPatience = (): (<T>(call: () => Promise<T>) => Promise<T>) => {
  const again = retry(handleType(StoreUnavailableError), {
    maxAttempts: 7,
    backoff: new ExponentialBackoff({ initialDelay: 100, maxDelay: 5000 }),
  })
  return async (call) => {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      return again.execute(call)
    }
  }
}

export const createEndTurn = (parts: EndTurnParts): EndTurn => {
  const patiently = createPatience()

  const failed = async (ticket: TurnTicket, session: SessionTicket, turn: TurnEnd): Promise<void> => {
    parts.events.turnEnded(failureOf(turn), turn.usage)
    // First of all the pod: the store may be away for longer.
    await letGo(ticket, session)
    await patiently(() => parts.store.abandon({ key: session.key, turnId: ticket.turnId }))
    parts.removeSoon()
  }

  /** Whatever becomes of the session, the turn's claim on its pod must not outlive the turn. */
  const letGo = async (ticket: TurnTicket, session: SessionTicket): Promise<void> => {
    if (session.claim === undefined) return
    const kvTurn = kvTurnOf(ticket, session, ticket.pod)
    const { claim } = session
    await withinLimit(parts.offloadTimeoutMs, (signal) => parts.connector.detach(kvTurn, claim, signal))
  }

  const completed = async (ticket: TurnTicket, session: SessionTicket, turn: TurnEnd): Promise<void> => {
    const pod = turn.servedBy ?? ticket.pod
    const usage = {
      prompt: turn.usage?.promptTokens ?? 0,
      output: turn.usage?.outputTokens ?? 0,
      cached: turn.usage?.cachedTokens ?? 0,
    }
    const { key, tenant, expiry } = session
    let outcome: CompleteOutcome
    try {
      outcome = await patiently(() => parts.store.complete({ key, tenant, turnId: ticket.turnId, pod, usage, expiry }))
    } catch (error) {
      await letGo(ticket, session)
      throw error
    }
    if (outcome.kind === 'gone') {
      parts.events.turnEnded('gone', turn.usage)
      await letGo(ticket, session)
      parts.removeSoon()
      return
    }
    parts.events.turnEnded('completed', turn.usage)
    if (usage.prompt > 0) parts.forecast.kept(key, pod, usage.prompt + usage.output)
    if (session.claim !== undefined) await keepKv(kvTurnOf(ticket, session, pod), session.claim, turn, outcome.record)
  }

  const keepKv = async (kvTurn: KvTurn, claim: string, turn: TurnEnd, record: SessionRecord): Promise<void> => {
    const startedMs = performance.now()
    const offloaded = await withinLimit(parts.offloadTimeoutMs, (signal) =>
      parts.connector.offload({
        turn: kvTurn,
        claim,
        totalTokens: turn.usage === undefined ? undefined : turn.usage.promptTokens + turn.usage.outputTokens,
        promptTokens: turn.usage?.promptTokens,
        announce: (artefact) =>
          patiently(() =>
            parts.store.announce({ ...artefact, session: kvTurn.session, graceMs: parts.announceGraceMs }),
          ),
        signal,
      }),
    )
    parts.events.offloaded(offloaded, performance.now() - startedMs)
    await patiently(() => writeDown(kvTurn, record, offloaded))
  }

  const writeDown = async (kvTurn: KvTurn, record: SessionRecord, offloaded: OffloadOutcome): Promise<void> => {
    switch (offloaded.kind) {
      case 'stored': {
        const { artefactId, payload, tokens, bytes } = offloaded
        await parts.store.commitKv({
          key: kvTurn.session,
          kv: { artefactId, payload, tokens, bytes, turn: record.turns },
        })
        return
      }
      case 'none':
        if (record.kvNote === offloaded.reason) return
        return parts.store.noteKv({ key: kvTurn.session, reason: offloaded.reason })
      case 'superseded':
      case 'unchanged':
        return
    }
  }

  return async (ticket, turn) => {
    parts.pods.turnEnded(ticket.pod, ticket.turnId)
    parts.admission?.release('prefill', ticket.turnId)
    reportPods(parts, ticket, turn)
    const isGood = turn.complete && turn.status >= 200 && turn.status < 300
    settleForecast(parts.forecast, ticket, turn)
    if (ticket.session === undefined) {
      parts.events.turnEnded(isGood ? 'completed' : failureOf(turn), turn.usage)
      return
    }
    try {
      await (isGood ? completed : failed)(ticket, ticket.session, turn)
    } catch (error) {
      // The turn's lease runs out by itself, and the reaper cleans up what the turn left.
      if (error instanceof StoreUnavailableError) parts.events.storeFault('end_turn', error)
      else parts.events.fault('end_turn', error)
    }
  }
}

const failureOf = (turn: TurnEnd): TurnOutcome => {
  if (turn.clientDisconnected) return 'client_left'
  if (turn.upstreamFailed) return 'upstream_failed'
  return turn.status >= 200 && turn.status < 300 ? 'incomplete' : 'engine_error'
}

const kvTurnOf = (ticket: TurnTicket, session: SessionTicket, pod: string): KvTurn => ({
  session: session.key,
  tenant: session.tenant,
  model: session.model,
  turnId: ticket.turnId,
  pod,
})

/** A turn that another pod served, or that failed upstream, tells that the chosen pod has trouble. */
const reportPods = (parts: EndTurnParts, ticket: TurnTicket, turn: TurnEnd): void => {
  const servedElsewhere = turn.servedBy !== undefined && turn.servedBy !== ticket.pod
  if (servedElsewhere || (turn.upstreamFailed && !turn.clientDisconnected)) parts.pods.markUnhealthy(ticket.pod)
  if (servedElsewhere && turn.upstreamFailed && turn.servedBy !== undefined) parts.pods.markUnhealthy(turn.servedBy)
}

const settleForecast = (forecast: TtftPredictor, ticket: TurnTicket, turn: TurnEnd): void => {
  const { session, turnId, pod } = ticket
  if (session === undefined) return
  const hasAnswer = turn.status === 200 && turn.usage !== undefined && turn.ttfbMs !== undefined
  forecast.ended(
    { turnId, pod, model: session.model },
    {
      how: turn.clientDisconnected || turn.ttfbMs === undefined ? 'abandoned' : 'done',
      answer: hasAnswer
        ? {
            computedTokens: turn.usage.promptTokens - turn.usage.cachedTokens,
            ttfbMs: turn.ttfbMs,
          }
        : undefined,
    },
  )
}
