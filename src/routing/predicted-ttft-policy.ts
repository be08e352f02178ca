import type { CostEstimate } from './cost-profile/cost-estimate.ts'
import type { PodState } from './pod.ts'
import { leastLoaded } from './pod-load.ts'
import { predictTurn } from './predicted-ttft.ts'
import { type RandomSource, randomChoice } from './random-choice.ts'
import type { RoutingInput, RoutingPolicy } from './routing-policy.ts'

/**
 * How many turns will come behind this one for each that is ahead of it. Where nobody waits, nobody is held up, and only the turn's own
 * time counts; the longer the queues, the more it matters not to compute what another pod already has. Replays of real traces were
 * quickest with 3 to 5.
 */
const followersPerTurnAhead = 3

/**
 * `predicted-ttft`: the pod where the turn will have its first token soonest, plus what it holds up those that come after it. So a session
 * stays where its KV lies until the queue there costs more than the KV is worth. Of equals the least loaded, then by chance. Of a turn
 * without a session nothing is known that could be predicted: `otherwise` picks its pod.
 */
export const createPredictedTtftPolicy = (options: {
  readonly costs: CostEstimate
  readonly random: RandomSource
  readonly otherwise: Pick<RoutingPolicy, 'pick'>
}): RoutingPolicy => ({
  name: 'predicted-ttft',
  pick: (turn, pods) => {
    if (turn.model === undefined) return options.otherwise.pick(turn, pods)
    const [first, ...others] = pods
    let best: [PodState, ...PodState[]] = [first]
    let bestMs = priceMs(options.costs, turn, first)
    for (const pod of others) {
      const price = priceMs(options.costs, turn, pod)
      if (price < bestMs) {
        best = [pod]
        bestMs = price
      } else if (price === bestMs) {
        best.push(pod)
      }
    }
    return randomChoice(leastLoaded(best), options.random)
  },
})

const priceMs = (costs: CostEstimate, turn: RoutingInput, pod: PodState): number => {
  const { ttftMs, queueMs, prefillMs } = predictTurn(costs, turn, pod)
  const turnsAhead = queueMs / costs.typicalPrefillMs(turn.model ?? '')
  return ttftMs + prefillMs * turnsAhead * followersPerTurnAhead
}
