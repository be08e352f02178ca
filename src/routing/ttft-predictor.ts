import { hashOfId, SlotMap } from '../collections/slot-map.ts'
import type { CostProfile } from './cost-profile/cost-profile.ts'
import type { PodAddress, PodSource, PodState } from './pod.ts'
import { predictWork } from './predicted-ttft.ts'
import type { RoutingInput } from './routing-policy.ts'
import { createSessionResidency } from './session-residency.ts'
import { createWorkBacklog, type WorkEnd } from './work-backlog.ts'

/** A turn at a pod. */
export interface ForecastTurn {
  readonly turnId: string
  readonly pod: PodAddress
  readonly model: string
}

/**
 * What a gateway process predicts of its pods from the turns it sends there, and how it learns from what became of them: the memory behind
 * `predicted-ttft` and `prefix-cache`. A turn that begins here and ends in another process is forgotten after its lease.
 */
export interface TtftPredictor {
  /** The pods of the source, with their backlogs. */
  pods(): readonly PodState[]
  /** Tokens of a session that each pod probably holds. */
  residentTokens(sessionKey: string): ReadonlyMap<PodAddress, number>
  /** A turn was given a pod, by `routing`: it counts from now on, though it may have to wait for its KV first. */
  routed(turn: ForecastTurn, routing: RoutingInput): void
  /** A turn was given a pod that has its KV, and need not wait: `routed` and `forwarded` in one. */
  sent(turn: ForecastTurn, routing: RoutingInput, tokensToCompute: number): void
  /** KV of so many bytes is being loaded for a turn; 0: nothing is. */
  loadStarted(turn: ForecastTurn, bytes: number): void
  /** The load is over. `loaded` is what came of it, if it came whole. */
  loadEnded(turn: ForecastTurn, loaded: { readonly bytes: number; readonly loadMs: number } | undefined): void
  /** A turn is forwarded, and so much of its prompt is left to compute. */
  forwarded(turn: ForecastTurn, tokensToCompute: number): void
  /**
   * A turn has ended; `answer` is undefined when none came, or it said nothing of tokens. May be told of turns that another process began:
   * then only the costs learn.
   */
  ended(
    turn: ForecastTurn,
    end: {
      readonly sessionKey: string | undefined
      readonly how: WorkEnd
      readonly answer: { readonly computedTokens: number; readonly ttfbMs: number } | undefined
    },
  ): void
  /** A turn of a session left KV of so many tokens in a pod. */
  kept(sessionKey: string, pod: PodAddress, tokens: number): void
  /** The session's KV is gone from everywhere. */
  forget(sessionKey: string): void
}

/** `nowMs` is a clock that never goes back. */
export const createTtftPredictor = (options: {
  readonly source: Pick<PodSource, 'pods'>
  readonly costs: CostProfile
  readonly turnLeaseMs: number
  readonly nowMs: () => number
  readonly maxSessionsPerPod: number
  readonly podCapacityTokens?: number | undefined
}): TtftPredictor => {
  const { costs } = options
  const prefills = createWorkBacklog(options)
  const loads = createWorkBacklog(options)
  const residency = createSessionResidency(options)
  const perSession = { hashOf: hashOfId, maxEntries: options.maxSessionsPerPod }
  /** The latest turn of each session that is under way. */
  const latest = new SlotMap<string, Pick<ForecastTurn, 'turnId' | 'pod'>>(perSession)
  /** Of turns behind another one of their session: what is expected to be left to compute then. */
  const followers = new SlotMap<string, number>(perSession)

  const pods = (): readonly PodState[] =>
    options.source.pods().map((pod) => ({
      // Named one by one, since every turn asks: a spread takes several times as long.
      address: pod.address,
      ready: pod.ready,
      inFlight: pod.inFlight,
      running: pod.running,
      waiting: pod.waiting,
      kvUsage: pod.kvUsage,
      inFlightAtRead: pod.inFlightAtRead ?? 0,
      prefillBacklogMs: prefills.remainingMs(pod.address),
      loadBacklogMs: loads.remainingMs(pod.address),
    }))

  const predictedMs = (pod: PodAddress, routing: RoutingInput): number =>
    predictWork(costs, routing, { address: pod, loadBacklogMs: loads.remainingMs(pod) }).prefillMs

  /** Whether a turn goes where another one of its session is: what that one will leave does not lie there yet. */
  const follows = ({ pod }: ForecastTurn, { affinityKey }: RoutingInput): boolean =>
    affinityKey !== undefined && latest.get(affinityKey)?.pod === pod

  const remember = ({ turnId, pod }: ForecastTurn, { affinityKey, promptTokens = 0 }: RoutingInput): void => {
    if (affinityKey === undefined) return
    latest.set(affinityKey, { turnId, pod })
    // The session's next turn may come before this one has ended.
    residency.served(affinityKey, pod, promptTokens)
  }

  return {
    pods,
    residentTokens: (sessionKey) => residency.tokensByPod(sessionKey),
    routed: (turn, routing) => {
      const { turnId, pod } = turn
      const workMs = predictedMs(pod, routing)
      prefills.started(pod, turnId, workMs)
      if (follows(turn, routing)) followers.set(turnId, workMs)
      remember(turn, routing)
    },
    sent: (turn, routing, tokensToCompute) => {
      const { turnId, pod, model } = turn
      const lackingMs = costs.recomputeMs(model, Math.max(1, tokensToCompute))
      const expectedMs = follows(turn, routing) ? predictedMs(pod, routing) : undefined
      prefills.started(pod, turnId, Math.min(lackingMs, expectedMs ?? lackingMs))
      if (expectedMs !== undefined) followers.set(turnId, expectedMs)
      remember(turn, routing)
    },
    loadStarted: ({ turnId, pod, model }, bytes) => {
      if (bytes > 0) loads.started(pod, turnId, costs.loadMs(model, bytes))
    },
    loadEnded: ({ turnId, pod, model }, loaded) => {
      const waitedMs = loads.ended(pod, turnId, loaded === undefined ? 'abandoned' : 'done')
      if (loaded !== undefined) costs.observeLoad(model, { ...loaded, waitedMs: waitedMs ?? 0 })
    },
    forwarded: ({ turnId, pod, model }, tokensToCompute) => {
      const lackingMs = costs.recomputeMs(model, Math.max(1, tokensToCompute))
      prefills.started(pod, turnId, Math.min(lackingMs, followers.get(turnId) ?? lackingMs))
    },
    ended: ({ turnId, pod, model }, { sessionKey, how, answer }) => {
      followers.delete(turnId)
      if (sessionKey !== undefined && latest.get(sessionKey)?.turnId === turnId) latest.delete(sessionKey)
      const waitedMs = prefills.ended(pod, turnId, how) ?? 0
      if (answer === undefined) return
      costs.observe(model, { tokens: answer.computedTokens, ttfbMs: answer.ttfbMs, waitedMs })
    },
    kept: (sessionKey, pod, tokens) => residency.served(sessionKey, pod, tokens),
    forget: (sessionKey) => residency.forget(sessionKey),
  }
}
