import type { PolicyName } from '../../src/routing/policies.ts'
import { createBlockCache } from './block-cache.ts'
import { createEventQueue } from './event-queue.ts'
import { type FleetSettings, loadOverheadMs, metricsIntervalMs } from './fleet-settings.ts'
import { createReplayRecord, type ReplayResult } from './replay-record.ts'
import { createSeededRandom } from './seeded-random.ts'
import { createSimulatedGateway, type RoutedTurn } from './simulated-gateway.ts'
import { createSimulatedPod, type SimulatedPod } from './simulated-pod.ts'
import { blockTokens, type TraceRequest } from './trace-request.ts'

const seed = 20_250_225

/**
 * Replays a trace on a fleet, in virtual time, under one policy: the requests come when the trace says, whatever becomes of the ones
 * before. `onRequest` is told of each.
 */
export const replayTrace = async (
  trace: AsyncIterable<TraceRequest>,
  options: { readonly settings: FleetSettings; readonly policy: PolicyName; readonly onRequest?: () => void },
): Promise<ReplayResult> => {
  const simulation = createSimulation(options.settings, options.policy)
  for await (const request of trace) {
    simulation.arrive(request)
    options.onRequest?.()
  }
  return simulation.finish()
}

interface Simulation {
  /** Lets everything happen that comes before the request, then the request itself. */
  arrive(request: TraceRequest): void
  finish(): ReplayResult
}

const createSimulation = (settings: FleetSettings, policy: PolicyName): Simulation => {
  let nowMs = 0
  const events = createEventQueue((timeMs) => {
    nowMs = timeMs
  })
  const gateway = createSimulatedGateway({ settings, policy, nowMs: () => nowMs, random: createSeededRandom(seed) })
  const store = createBlockCache({ maxBlocks: settings.storeBlocks })
  const loadMs = (tokens: number): number => loadOverheadMs + (tokens * 1000) / settings.loadTokensPerSecond
  const pods = Array.from({ length: settings.pods }, () => createSimulatedPod(settings, loadMs))
  const record = createReplayRecord({ policy, settings })
  let nextMetricsMs = 0

  /** Lets the engine begin with its next prompt, if it can. */
  const proceed = (pod: SimulatedPod): void => {
    const begun = pod.begin()
    if (begun === undefined) return
    const { job, prefill } = begun
    record.reused(prefill)
    events.add(nowMs + prefill.durationMs, () => {
      pod.prefillDone()
      store.use(job.request.blocks, job.request.blocks.length)
      job.onFirstToken(prefill.computedTokens)
      events.add(nowMs + (job.request.outputTokens * 1000) / settings.decodeTokensPerSecond, () => {
        pod.generated(job)
        job.onComplete()
      })
      proceed(pod)
    })
  }

  const forward = (
    turn: RoutedTurn,
    pod: SimulatedPod,
    has: { readonly arrivedMs: number; readonly presentBlocks: number },
  ): void => {
    const forwardedMs = nowMs
    let response = { computedTokens: 0, ttfbMs: 0 }
    gateway.forwarded(turn, turn.request.inputTokens - has.presentBlocks * blockTokens)
    pod.enqueue({
      request: turn.request,
      presentBlocks: has.presentBlocks,
      onFirstToken: (computedTokens) => {
        response = { computedTokens, ttfbMs: nowMs - forwardedMs }
        record.firstToken(nowMs - has.arrivedMs)
      },
      onComplete: () => gateway.ended(turn, response),
    })
    proceed(pod)
  }

  /** What the connector does before the request is forwarded. */
  const attach = (turn: RoutedTurn, pod: SimulatedPod): void => {
    const { request } = turn
    const arrivedMs = nowMs
    const held = pod.blocks.heldPrefix(request.blocks)
    const stored = store.heldPrefix(request.blocks)
    store.use(request.blocks, stored)
    const plan = gateway.planLoad(turn, { podTokens: held * blockTokens, storeTokens: stored * blockTokens })
    if (plan.kind === 'no-load') {
      forward(turn, pod, { arrivedMs, presentBlocks: held })
      return
    }
    const tokens = (stored - held) * blockTokens
    const doneMs = pod.load(nowMs, tokens)
    const inTime = doneMs - nowMs <= plan.budgetMs
    events.add(Math.min(doneMs, nowMs + plan.budgetMs), () => {
      gateway.loadEnded(turn, { tokens, tookMs: nowMs - arrivedMs, inTime })
      forward(turn, pod, { arrivedMs, presentBlocks: inTime ? stored : held })
    })
  }

  const runUntil = (timeMs: number): void => {
    for (let next = events.nextMs; next !== undefined && next <= timeMs; next = events.nextMs) events.step()
  }

  return {
    arrive: (request) => {
      const arrivesMs = request.timestampMs * settings.timeScale
      while (nextMetricsMs <= arrivesMs) {
        runUntil(nextMetricsMs)
        gateway.readMetrics(pods)
        nextMetricsMs += metricsIntervalMs
      }
      runUntil(arrivesMs)
      nowMs = arrivesMs
      record.arrived(request, arrivesMs)
      const turn = gateway.route(request)
      const pod = pods[turn.podIndex]
      if (pod === undefined) throw new Error(`There is no ${turn.pod}`)
      attach(turn, pod)
    },
    finish: () => {
      runUntil(Number.POSITIVE_INFINITY)
      return record.result({ pods, conversations: gateway.conversations, endedMs: nowMs })
    },
  }
}
