import { loadBudgetMs } from '../../src/context/prepare-kv.ts'
import { worthwhileLoadMs } from '../../src/routing/cost-model.ts'
import type { PodAddress, RandomSource } from '../../src/routing/pod.ts'
import type { PolicyName } from '../../src/routing/policies.ts'
import type { RoutingInput } from '../../src/routing/router.ts'
import type { TurnAtPod } from '../../src/routing/ttft-predictor.ts'
import { createConversations } from './conversations.ts'
import { bytesPerToken, type FleetSettings } from './fleet-settings.ts'
import { createGatewayParts, maxLoadMs, modelName as model } from './gateway-parts.ts'
import { blockTokens, type TraceRequest } from './trace.ts'

/** A turn that was given a pod. */
export interface RoutedTurn extends TurnAtPod {
  readonly conversation: string
  /** The pod's place in the fleet. */
  readonly podIndex: number
  readonly request: TraceRequest
  readonly routing: RoutingInput
}

/**
 * A gateway on virtual time. It consists of the parts that serve traffic: the router with its policies, the counts of
 * turns in flight, the predictor with its backlogs and its guess at what lies where, the cost model, the load policy.
 * It knows what a gateway would know: never what really lies in a pod before the turn is there.
 */
export const createSimulatedGateway = (options: {
  readonly settings: FleetSettings
  readonly policy: PolicyName
  readonly nowMs: () => number
  readonly random: RandomSource
}) => {
  const { settings } = options
  const { costs, predictor, router, indexOf, ...parts } = createGatewayParts(options)
  const conversations = createConversations()
  const sessions = new Map<string, { readonly pod: PodAddress; readonly storedTokens: number }>()
  let turns = 0

  return {
    get conversations() {
      return conversations.count
    },
    route: (request: TraceRequest): RoutedTurn => {
      const conversation = conversations.recognise(request)
      const session = sessions.get(conversation)
      const storedTokens = settings.storeBlocks > 0 ? Math.min(session?.storedTokens ?? 0, request.inputTokens) : 0
      const routing: RoutingInput = {
        affinityKey: conversation,
        lastPod: session?.pod,
        model,
        promptTokens: request.inputTokens,
        stored: storedTokens === 0 ? undefined : { tokens: storedTokens, bytes: storedTokens * bytesPerToken },
        residentTokens: predictor.residentTokens(conversation),
      }
      const outcome = router.route(routing, undefined)
      const podIndex = outcome.kind === 'routed' ? indexOf.get(outcome.pod) : undefined
      if (outcome.kind !== 'routed' || podIndex === undefined) {
        throw new Error('A replay has pods, and all are ready')
      }
      turns += 1
      const turn: RoutedTurn = {
        turnId: `turn-${turns}`,
        pod: outcome.pod,
        podIndex,
        model,
        conversation,
        request,
        routing,
      }
      parts.turnStarted(turn.pod, turn.turnId)
      predictor.routed(turn, routing)
      return turn
    },
    /**
     * How long the turn may wait for a load, or undefined for no load, given what the pod and the store hold, in tokens
     * from the prompt's start.
     */
    planLoad: (
      { pod }: RoutedTurn,
      { podTokens, storeTokens }: { readonly podTokens: number; readonly storeTokens: number },
    ) => {
      const loadMs = worthwhileLoadMs(costs, {
        model,
        stored: { tokens: storeTokens, bytes: storeTokens * bytesPerToken },
        residentTokens: podTokens,
      })
      const budget = { tokens: storeTokens, backlogMs: predictor.backlogMs(pod) }
      return loadMs === undefined ? undefined : loadBudgetMs({ costs, maxLoadMs }, model, budget)
    },
    /** `load` is undefined when the turn did not wait for its end. */
    loadEnded: (turn: RoutedTurn, load: { readonly tokens: number; readonly tookMs: number } | undefined): void =>
      predictor.loadEnded(turn, load && { bytes: load.tokens * bytesPerToken, loadMs: load.tookMs }),
    forwarded: (turn: RoutedTurn, tokensToCompute: number): void =>
      predictor.forwarded(turn, turn.routing, tokensToCompute),
    /** The response is complete. `ttfbMs` runs from when the request was forwarded. */
    ended: (turn: RoutedTurn, response: { readonly computedTokens: number; readonly ttfbMs: number }): void => {
      parts.turnEnded(turn.pod, turn.turnId)
      predictor.ended(turn, { how: 'done', response })
      const fullBlocks = Math.floor(turn.request.inputTokens / blockTokens)
      sessions.set(turn.conversation, { pod: turn.pod, storedTokens: fullBlocks * blockTokens })
    },
    readMetrics: parts.readMetrics,
  }
}
