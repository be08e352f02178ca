import { type CostEstimate, worthwhileLoadMs } from './cost-model.ts'
import { leastLoaded, lowest, type PodAddress, type PodState, podLoad, type RandomSource, randomPod } from './pod.ts'
import { type PickPod, type RoutingInput, residentTokensIn } from './router.ts'

/**
 * Turns expected behind this one for each ahead of it. Without a queue only the turn's own time counts; the longer the
 * queues, the more it costs to compute what another pod has. Replays of real traces had the lowest TTFT with 3 to 5.
 */
const followersPerTurnAhead = 3

/**
 * `predicted-ttft`: the pod with the lowest predicted time to first token, plus the delay of the turns behind it. So a
 * session stays where its KV is until the queue there costs more than the KV is worth. Of equals the least loaded, then
 * random. Without model or length of the prompt nothing can be predicted, nor where the KV of another party's session
 * is: `otherwise` picks the pod.
 */
export const createPredictedTtftPolicy =
  (options: { readonly costs: CostEstimate; readonly random: RandomSource; readonly otherwise: PickPod }): PickPod =>
  (turn, pods) =>
    turn.model === undefined || turn.promptTokens === undefined || isForeignAndUnknown(turn)
      ? options.otherwise(turn, pods)
      : randomPod(leastLoaded(lowest(pods, (pod) => costMs(options.costs, turn, pod))), options.random)

const isForeignAndUnknown = ({ isForeign = false, residentTokens }: RoutingInput): boolean =>
  isForeign && (residentTokens?.size ?? 0) === 0

const costMs = (costs: CostEstimate, turn: RoutingInput, pod: PodState): number => {
  const { ttftMs, queueMs, prefillMs } = predictTurn(costs, turn, pod)
  const turnsAhead = queueMs / costs.typicalPrefillMs(turn.model ?? '')
  return ttftMs + prefillMs * turnsAhead * followersPerTurnAhead
}

/**
 * The course of a turn at one pod: until its first token (`ttftMs`), until all prompts ahead of it are computed
 * (`queueMs`), to compute its own (`prefillMs`), for which the turns behind it wait. Where a load pays, it runs while
 * the pod works on its queue: the turn waits for the longer of the two, then computes the rest. Else it waits for the
 * queue, then computes all that the pod lacks.
 */
export const predictTurn = (costs: CostEstimate, turn: RoutingInput, pod: PodState) => {
  const { prefillMs, loadMs, promptTokens } = predictWork(costs, turn, pod.address)
  // Of requests of others that wait in the engine the length is unknown: they are taken to be like this one.
  const foreignWaiting = Math.min(pod.waiting, podLoad(pod) - pod.inFlight)
  const foreignMs = foreignWaiting * costs.recomputeMs(turn.model ?? '', promptTokens)
  const queueMs = (pod.prefillBacklogMs ?? 0) + foreignMs
  return { ttftMs: Math.max(queueMs, loadMs) + prefillMs, queueMs, prefillMs }
}

/**
 * The predicted work of a turn at a pod, without its queue; `loadMs` is 0 where nothing is loaded. `presentTokens` are
 * in the pod, or will have been loaded.
 */
export const predictWork = (costs: CostEstimate, turn: RoutingInput, address: PodAddress) => {
  const { model = '', stored } = turn
  const residentTokens = residentTokensIn(turn, address)
  const promptTokens = Math.max(turn.promptTokens ?? 0, stored?.tokens ?? 0, residentTokens)
  const loadMs = stored && worthwhileLoadMs(costs, { model, stored, residentTokens })
  const presentTokens = stored === undefined || loadMs === undefined ? residentTokens : stored.tokens
  const prefillMs = costs.recomputeMs(model, promptTokens - presentTokens)
  return { prefillMs, loadMs: loadMs ?? 0, promptTokens, presentTokens }
}
