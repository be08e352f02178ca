import { type CostEstimate, worthwhileLoadMs } from './cost-profile/cost-estimate.ts'
import type { PodState } from './pod.ts'
import { podLoad } from './pod-load.ts'
import { residentTokensIn } from './resident-tokens.ts'
import type { RoutingInput } from './routing-policy.ts'

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
export const predictTurn = (costs: CostEstimate, turn: RoutingInput, pod: PodState): PredictedTurn => {
  const { prefillMs, loadMs, promptTokens } = predictWork(costs, turn, pod)
  const waitingForeign = foreignWaiting(pod)
  const foreignMs = waitingForeign === 0 ? 0 : waitingForeign * costs.recomputeMs(turn.model ?? '', promptTokens)
  const queueMs = (pod.prefillBacklogMs ?? 0) + foreignMs
  return { ttftMs: Math.max(queueMs, loadMs) + prefillMs, queueMs, prefillMs, loadMs }
}

/** What a turn asks of a pod, whoever else is there. */
export interface PredictedWork extends Pick<PredictedTurn, 'prefillMs' | 'loadMs'> {
  /** Of the whole prompt, stored and resident parts included. */
  readonly promptTokens: number
}

/** A load is part of it where it pays. */
export const predictWork = (
  costs: CostEstimate,
  turn: RoutingInput,
  pod: Pick<PodState, 'address' | 'loadBacklogMs'>,
): PredictedWork => {
  const model = turn.model ?? ''
  const resident = residentTokensIn(turn, pod.address)
  const { stored } = turn
  const promptTokens = Math.max(turn.promptTokens ?? unknownPromptTokens, stored?.tokens ?? 0, resident)
  const loadMs =
    stored === undefined
      ? undefined
      : worthwhileLoadMs(costs, { model, stored, residentTokens: resident, backlogMs: pod.loadBacklogMs ?? 0 })
  const atHand = stored === undefined || loadMs === undefined ? resident : stored.tokens
  return { prefillMs: costs.recomputeMs(model, promptTokens - atHand), loadMs: loadMs ?? 0, promptTokens }
}

/** Requests of others that wait in the engine: this gateway cannot know their length, and takes them to be like its own. */
const foreignWaiting = (pod: PodState): number => Math.min(pod.waiting, podLoad(pod) - pod.inFlight)
