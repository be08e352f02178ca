import { createAdmission } from '../../../src/admission/admission.ts'
import { planAdmission } from '../../../src/admission/plan/plan-admission.ts'
import { admitTurn, type Choice } from '../../../src/context/admit-turn.ts'
import { loadBudgetMs } from '../../../src/context/prepare-kv.ts'
import { sessionKeyOf } from '../../../src/context/session-id.ts'
import { worthwhileLoadMs } from '../../../src/routing/cost-model.ts'
import type { PodAddress } from '../../../src/routing/pod.ts'
import type { RoutingInput } from '../../../src/routing/router.ts'
import { createGatewayParts, maxLoadMs, modelName as model, turnLeaseMs } from '../gateway-parts.ts'
import type { TraceRequest } from '../trace.ts'
import type { VirtualTime } from '../virtual-time.ts'
import type { KeptKv, KvStore } from './kv-store.ts'
import type { createSlotConnector, SlotOutcome, TurnInPod } from './slot-connector.ts'
import type { SlotPod } from './slot-pod.ts'

/** As a gateway's own defaults have it. */
const admissionDefaults = {
  leaseMs: turnLeaseMs,
  maxWaiting: 1_000,
  maxWaitMs: 5_000,
  messageTimeoutMs: 120_000,
  events: { settled: () => {}, leaseExpired: () => {} },
} as const

/** A turn that is forwarded. */
export interface AdmittedTurn extends TurnInPod, SlotOutcome {
  /** How long it waited for a slot. */
  readonly waitedMs: number
}

interface Route extends Choice<Route> {}

const noRequirements = {
  requirements: [],
  resources: [],
  globalResources: [],
  priorities: [],
  objectives: [],
  defaultPriority: 1,
} as const

/** No client disconnects, and Envoy waits. */
const newScope = () => ({ signal: new AbortController().signal, extendDeadline: () => {}, releaseBody: () => {} })

/**
 * A gateway in front of pods with slots, on virtual time: the parts of {@link createGatewayParts}, the queue of turns
 * that wait for a slot, and the ledger of slots.
 */
export const createSlotGateway = (
  options: Parameters<typeof createGatewayParts>[0] & {
    readonly time: VirtualTime
    readonly pods: readonly SlotPod[]
    readonly store: KvStore
    readonly connector: ReturnType<typeof createSlotConnector>
  },
) => {
  const { time, pods, store, connector } = options
  const { costs, predictor, router, indexOf, turnStarted, turnEnded, readMetrics } = createGatewayParts(options)
  const planned = planAdmission(noRequirements, undefined)
  if (planned.kind === 'invalid') throw new Error('Admission without requirements is possible')
  const { plan } = planned
  const admission = createAdmission({ ...admissionDefaults, plan, nowMs: time.nowMs, startTimer: time.startTimer })
  const lastPods = new Map<string, PodAddress>()
  let turns = 0

  const routeFor = (input: RoutingInput): Route => {
    const among = (mayChoose?: (pod: string) => boolean): Route | undefined => {
      const outcome = router.route(input, undefined, mayChoose)
      if (outcome.kind !== 'routed') return undefined
      const { pod, policy } = outcome
      return { pool: { predictor }, pod, policy, input, objective: undefined, among }
    }
    const route = among()
    if (route === undefined) throw new Error('A replay has pods, and all are ready')
    return route
  }

  const inputOf = (conversation: string, request: TraceRequest): RoutingInput => {
    const stored = store.find(conversation)
    const residentTokens = predictor.residentTokens(sessionKeyOf(conversation))
    return {
      affinityKey: sessionKeyOf(conversation),
      lastPod: lastPods.get(conversation),
      model,
      promptTokens: Math.max(request.inputTokens, stored?.tokens ?? 0, ...residentTokens.values()),
      stored: stored && { tokens: stored.tokens, bytes: stored.bytes },
      residentTokens,
    }
  }

  const isWorthLoading = (stored: KeptKv): boolean =>
    worthwhileLoadMs(costs, { model, stored, residentTokens: 0 }) !== undefined

  /** Tries the turn at a pod: claims a slot, and brings the KV there. */
  const attempt = async (route: Route, turn: Pick<TurnInPod, 'turnId' | 'conversation' | 'request'>) => {
    const { input, pod: address } = route
    const pod = pods[indexOf.get(address) ?? -1]
    if (pod === undefined) throw new Error(`There is no ${address}`)
    const inPod: TurnInPod = { ...turn, address, pod }
    const at = { turnId: turn.turnId, pod: address, model }
    const { isShort } = predictor.expect(input, address)
    const tokens = Math.max(store.find(turn.conversation)?.tokens ?? 0, input.residentTokens?.get(address) ?? 0)
    const budgetMs = loadBudgetMs({ costs, maxLoadMs }, model, { tokens, backlogMs: predictor.backlogMs(address) })
    const startedMs = time.nowMs()
    turnStarted(address, turn.turnId)
    predictor.routed(at, input)
    const outcome = await connector.prepare({ ...inPod, isShort, budgetMs, isWorthLoading })
    const { slot, present, loadMs } = outcome
    predictor.loadEnded(at, present && loadMs !== undefined ? { bytes: present.bytes, loadMs } : undefined)
    const preparedMs = time.nowMs() - startedMs
    return {
      hasRoom: outcome.hasRoom,
      accept: () => {
        predictor.forwarded(at, input, (input.promptTokens ?? 0) - (present?.tokens ?? 0))
        return { ...inPod, ...outcome, preparedMs }
      },
      withdraw: async () => {
        turnEnded(address, turn.turnId)
        predictor.ended(at, { how: 'abandoned', response: undefined })
        if (slot !== undefined) await connector.release(inPod, slot)
      },
    }
  }

  return {
    /** Resolves when the turn has a pod, and its slot or no prospect of one. */
    admit: async (conversation: string, request: TraceRequest): Promise<AdmittedTurn> => {
      turns += 1
      const turn = { turnId: `turn-${turns}`, conversation, request }
      const route = routeFor(inputOf(conversation, request))
      const asked = { turnId: turn.turnId, tenant: undefined, route, seeksRoom: true, loadMs: maxLoadMs }
      const startedMs = time.nowMs()
      const { preparedMs, ...admitted } = await admitTurn(
        { admission, events: { routed: () => {} } },
        asked,
        newScope(),
        (chosen) => attempt(chosen, turn),
      )
      return { ...admitted, waitedMs: time.nowMs() - startedMs - preparedMs }
    },
    /** The answer is complete. `ttfbMs` runs from when the request was forwarded. Resolves when its KV is saved. */
    ended: async (
      turn: AdmittedTurn,
      ran: number,
      response: { readonly computedTokens: number; readonly ttfbMs: number },
    ): Promise<void> => {
      const { turnId, address, conversation, request, slot } = turn
      turnEnded(address, turnId)
      admission.release('prefill', turnId)
      predictor.ended({ turnId, pod: address, model }, { how: 'done', response })
      predictor.kept(sessionKeyOf(conversation), address, request.inputTokens + request.outputTokens)
      lastPods.set(conversation, address)
      await connector.finish(turn, { ran, held: slot })
      admission.roomAt(address)
    },
    readMetrics,
  }
}
