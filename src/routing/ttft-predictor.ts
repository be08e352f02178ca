import { LRUCache } from 'lru-cache'
import { atMostEntries } from '../async/at-most-entries.ts'
import { ExpiringMap } from '../async/expiring-map.ts'
import type { CostModel } from './cost-model.ts'
import type { PodAddress, PodSource, PodState } from './pod.ts'
import { predictWork } from './predicted-ttft.ts'
import { PrefillQueue } from './prefill-queue.ts'
import type { RoutingInput } from './router.ts'

/** A turn and the pod that was chosen for it. */
export interface TurnAtPod {
  readonly turnId: string
  readonly pod: PodAddress
  readonly model: string
}

/** Whether the turn's work was done; `response` is undefined when there was no response with usage. */
export interface PredictionEnd {
  readonly how: 'done' | 'abandoned'
  readonly response: { readonly computedTokens: number; readonly ttfbMs: number } | undefined
}

const maxPods = 1000
/** Turns whose ends are still expected; above this, the oldest is dropped. */
const maxTurns = 65_536
/** Pods of one session; above this, the one that served it longest ago is dropped. */
const maxPodsPerSession = 16

const nowhere: ReadonlyMap<PodAddress, number> = new Map()

/**
 * Predicts the load of each pod from the turns that this process sends there, and learns costs from how they end: the
 * state behind `predicted-ttft` and `prefix-cache`. All of it is an estimate: engines evict on their own, and what a
 * pod really holds is found out when a turn reaches it.
 */
export interface TtftPredictor {
  /** The pods of the source, with their prefill backlogs. */
  pods(): readonly PodState[]
  /** Predicted milliseconds until the pod has computed all prompts that this process sent to it. */
  backlogMs(pod: PodAddress): number
  /** Tokens of a session that each pod probably holds; empty when nothing is known. */
  residentTokens(sessionKey: string): ReadonlyMap<PodAddress, number>
  /** Sessions whose KV the pod probably holds. */
  sessionsAt(pod: PodAddress): number
  /** The turn's work at a pod. `isShort`: at most half of the prompt is left to compute, the rest is there or loads. */
  expect(input: RoutingInput, pod: PodAddress): { readonly isShort: boolean; readonly prefillMs: number }
  /** A pod was chosen for a turn: its predicted work counts from now on, even if its KV is yet to be loaded. */
  routed(turn: TurnAtPod, input: RoutingInput): void
  /** The load of a turn ended. `loaded` is set when all of it was loaded. */
  loadEnded(turn: TurnAtPod, loaded: { readonly bytes: number; readonly loadMs: number } | undefined): void
  /** A turn is forwarded, and `tokensToCompute` of its prompt are left to compute. */
  forwarded(turn: TurnAtPod, input: RoutingInput, tokensToCompute: number): void
  /** A turn ended. Of turns that another process started, only the costs are learnt. */
  ended(turn: TurnAtPod, end: PredictionEnd): void
  /** A turn of a session left KV of `tokens` in a pod; 0 changes nothing. */
  kept(sessionKey: string, pod: PodAddress, tokens: number): void
  /** The session's KV is removed from all pods. */
  forget(sessionKey: string): void
}

/** `nowMs` is a monotonic clock. */
export const createTtftPredictor = (options: {
  readonly source: Pick<PodSource, 'pods'>
  readonly costs: CostModel
  readonly nowMs: () => number
  /** Sessions whose pods are remembered; above this, the least recently used is dropped. */
  readonly maxSessions: number
  /** Lease of a turn, milliseconds. A turn whose end is reported to another process is dropped after this time. */
  readonly turnLeaseMs: number
}): TtftPredictor => {
  const { costs, nowMs } = options
  const queues = new LRUCache<PodAddress, PrefillQueue>({ max: maxPods })
  /** Predicted wait by turn id, milliseconds. */
  const waits = new ExpiringMap<number>({ lifetimeMs: options.turnLeaseMs, maxEntries: maxTurns, nowMs })
  const sessionsByPod = new Map<PodAddress, number>()
  const count = (pods: ReadonlyMap<PodAddress, number>, change: number): void => {
    for (const pod of pods.keys()) {
      const now = (sessionsByPod.get(pod) ?? 0) + change
      if (now === 0) sessionsByPod.delete(pod)
      else sessionsByPod.set(pod, now)
    }
  }
  const sessions = new LRUCache<string, ReadonlyMap<PodAddress, number>>({
    ...atMostEntries(options.maxSessions),
    dispose: (pods) => count(pods, -1),
  })

  const setWork = ({ turnId, pod }: TurnAtPod, workMs: number): void => {
    const now = nowMs()
    const queue = queues.get(pod) ?? new PrefillQueue()
    queues.set(pod, queue)
    if (waits.get(turnId) !== undefined) queue.remove(turnId, now)
    waits.set(turnId, queue.remainingMs(now))
    queue.add(turnId, workMs, now)
  }

  const kept = (sessionKey: string, pod: PodAddress, tokens: number): void => {
    if (!(tokens > 0)) return
    // A copy, since a turn under way may still read the map it received.
    const pods = new Map(sessions.get(sessionKey))
    pods.delete(pod)
    pods.set(pod, tokens)
    if (pods.size > maxPodsPerSession) deleteOldest(pods)
    count(pods, 1)
    sessions.set(sessionKey, pods)
  }

  return {
    pods: () => {
      const now = nowMs()
      return options.source.pods().map((pod) => withBacklog(pod, queues.peek(pod.address)?.remainingMs(now) ?? 0))
    },
    backlogMs: (pod) => queues.peek(pod)?.remainingMs(nowMs()) ?? 0,
    residentTokens: (sessionKey) => sessions.get(sessionKey) ?? nowhere,
    sessionsAt: (pod) => sessionsByPod.get(pod) ?? 0,
    expect: (input, pod) => {
      const { prefillMs, presentTokens, promptTokens } = predictWork(costs, input, pod)
      return { isShort: presentTokens > 0 && presentTokens * 2 >= promptTokens, prefillMs }
    },
    routed: (turn, input) => {
      setWork(turn, predictWork(costs, input, turn.pod).prefillMs)
    },
    loadEnded: ({ model }, loaded) => {
      if (loaded !== undefined) costs.observeLoad(model, loaded)
    },
    forwarded: (turn, input, tokensToCompute) => {
      setWork(turn, costs.recomputeMs(turn.model, Math.max(1, tokensToCompute)))
      // The session's next turn may start before this one ends.
      if (input.affinityKey !== undefined) kept(input.affinityKey, turn.pod, input.promptTokens ?? 0)
    },
    ended: ({ turnId, pod, model }, { how, response }) => {
      const queue = queues.get(pod)
      if (how === 'done') queue?.done(turnId, nowMs())
      else queue?.remove(turnId, nowMs())
      const waitMs = waits.get(turnId) ?? 0
      waits.delete(turnId)
      // The time to first byte of a turn that waited is mostly the work of others.
      if (response === undefined || waitMs > 0) return
      costs.observe(model, { tokens: response.computedTokens, ttfbMs: response.ttfbMs })
    },
    kept,
    forget: (sessionKey) => void sessions.delete(sessionKey),
  }
}

/** Field by field, which takes an eighth of the time of a spread. This is done for every pod on every turn. */
const withBacklog = (pod: PodState, prefillBacklogMs: number): PodState => {
  const { address, ready, isNew = false, inFlight, models, instance } = pod
  const { running, waiting, kvUsage, activeAdapters, inFlightAtRead = 0 } = pod
  const copy = {
    address,
    ready,
    isNew,
    inFlight,
    models,
    instance,
    running,
    waiting,
    kvUsage,
    activeAdapters,
    inFlightAtRead,
    prefillBacklogMs,
  }
  return copy satisfies Record<keyof PodState, unknown>
}

const deleteOldest = (entries: Map<string, number>): void => {
  const [oldest] = entries.keys()
  if (oldest !== undefined) entries.delete(oldest)
}
