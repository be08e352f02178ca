import { type CostEstimate, worthwhileLoadMs } from './cost-profile/cost-estimate.ts'
import type { PodState } from './pod.ts'
import { podLoad } from './pod-load.ts'
import { residentTokensIn } from './resident-tokens.ts'
import type { RoutingTurn } from './routing-policy.ts'

/** What a turn would meet in one pod, milliseconds. */
export interface PredictedTurn {
  /** Until the first token. */
  readonly ttftMs: number
  /** Until the pod will have computed all prompts that are ahead of this one. */
  readonly queueMs: number
  /** What the pod computes for this turn: its share of {@link ttftMs}, and what turns after it wait for. */
  readonly prefillMs: number
  /** Until what is stored will be loaded; 0 where nothing is loaded. */
  readonly loadMs: number
}

/** A prompt whose length nobody knows is taken to be this long. */
const unknownPromptTokens = 1024

/**
 * Where a load pays, it runs while the pod's queue does: wait for the longer of the two, then compute the rest, which is in no store.
 * Else wait for the queue, then compute all that the pod lacks.
 */
export const predictTurn = (costs: CostEstimate, turn: RoutingTurn, pod: PodState): PredictedTurn => {
  const model = turn.model ?? ''
  const resident = residentTokensIn(turn, pod.address)
  const storedTokens = turn.stored?.tokens ?? 0
  const prompt = Math.max(turn.promptTokens ?? unknownPromptTokens, storedTokens, resident)
  const queueMs = (pod.prefillBacklogMs ?? 0) + foreignWaiting(pod) * costs.recomputeMs(model, prompt)
  const recomputeMs = costs.recomputeMs(model, prompt - resident)
  const computing: PredictedTurn = { ttftMs: queueMs + recomputeMs, queueMs, prefillMs: recomputeMs, loadMs: 0 }
  const { stored } = turn
  if (stored === undefined) return computing
  const loadMs = worthwhileLoadMs(costs, { model, stored, residentTokens: resident, backlogMs: pod.loadBacklogMs ?? 0 })
  if (loadMs === undefined) return computing
  const restMs = costs.recomputeMs(model, prompt - storedTokens)
  return { ttftMs: Math.max(queueMs, loadMs) + restMs, queueMs, prefillMs: restMs, loadMs }
}

/** Requests of others that wait in the engine: this gateway cannot know their length, and takes them to be like its own. */
const foreignWaiting = (pod: PodState): number => Math.min(pod.waiting, podLoad(pod) - pod.inFlight)
