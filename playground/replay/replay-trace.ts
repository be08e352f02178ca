import type { PolicyName } from '../../src/routing/policies.ts'
import { createBlockCache } from './block-cache.ts'
import { type FleetSettings, loadOverheadMs, metricsIntervalMs } from './fleet-settings.ts'
import { type ReplayResult, summariseReplay } from './replay-record.ts'
import { createSeededRandom } from './seeded-random.ts'
import { createSimulatedGateway, type RoutedTurn } from './simulated-gateway.ts'
import { createSimulatedPod, type Prefill, type SimulatedPod } from './simulated-pod.ts'
import { blockTokens, type TraceRequest } from './trace.ts'
import { createVirtualTime } from './virtual-time.ts'

/** Replays a trace on a fleet, in virtual time, under one policy: requests come when it says, in any case. */
export const replayTrace = (
  trace: readonly TraceRequest[],
  { settings, policy }: { readonly settings: FleetSettings; readonly policy: PolicyName },
): ReplayResult => {
  const time = createVirtualTime()
  const { nowMs, at } = time
  const gateway = createSimulatedGateway({ settings, policy, nowMs, random: createSeededRandom() })
  const store = createBlockCache({ maxBlocks: settings.storeBlocks })
  const loadMs = (tokens: number): number => loadOverheadMs + (tokens * 1000) / settings.loadTokensPerSecond
  const pods = Array.from({ length: settings.pods }, () => createSimulatedPod(settings, loadMs))
  const ttftsMs: number[] = []
  const prefills: Prefill[] = []
  let nextMetricsMs = (trace[0]?.timestampMs ?? 0) * settings.timeScale

  /** Lets the engine begin with its next prompt, if it can. */
  const proceed = (pod: SimulatedPod): void => {
    const begun = pod.begin()
    if (begun === undefined) return
    const { job, prefill } = begun
    prefills.push(prefill)
    at(nowMs() + prefill.durationMs, () => {
      pod.prefillDone()
      store.use(job.request.blocks, job.request.blocks.length)
      job.onFirstToken(prefill.computedTokens)
      at(nowMs() + (job.request.outputTokens * 1000) / settings.decodeTokensPerSecond, () => {
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
    const forwardedMs = nowMs()
    let response = { computedTokens: 0, ttfbMs: 0 }
    gateway.forwarded(turn, turn.request.inputTokens - has.presentBlocks * blockTokens)
    pod.enqueue({
      request: turn.request,
      presentBlocks: has.presentBlocks,
      onFirstToken: (computedTokens) => {
        response = { computedTokens, ttfbMs: nowMs() - forwardedMs }
        ttftsMs.push(nowMs() - has.arrivedMs)
      },
      onComplete: () => gateway.ended(turn, response),
    })
    proceed(pod)
  }

  /** What the connector does before the request is forwarded. */
  const attach = (turn: RoutedTurn, pod: SimulatedPod): void => {
    const { request } = turn
    const arrivedMs = nowMs()
    const held = pod.blocks.heldPrefix(request.blocks)
    const stored = store.heldPrefix(request.blocks)
    store.use(request.blocks, stored)
    const budgetMs = gateway.planLoad(turn, { podTokens: held * blockTokens, storeTokens: stored * blockTokens })
    if (budgetMs === undefined) {
      forward(turn, pod, { arrivedMs, presentBlocks: held })
      return
    }
    const tokens = (stored - held) * blockTokens
    const doneMs = pod.load(nowMs(), tokens)
    const inTime = doneMs - nowMs() <= budgetMs
    at(Math.min(doneMs, nowMs() + budgetMs), () => {
      gateway.loadEnded(turn, inTime ? { tokens, tookMs: nowMs() - arrivedMs } : undefined)
      forward(turn, pod, { arrivedMs, presentBlocks: inTime ? stored : held })
    })
  }

  for (const request of trace) {
    const arrivesMs = request.timestampMs * settings.timeScale
    while (nextMetricsMs <= arrivesMs) {
      time.runUntil(nextMetricsMs)
      gateway.readMetrics(pods.map((pod) => pod.reading()))
      nextMetricsMs += metricsIntervalMs
    }
    time.runUntil(arrivesMs)
    const turn = gateway.route(request)
    const pod = pods[turn.podIndex]
    if (pod === undefined) throw new Error(`There is no ${turn.pod}`)
    attach(turn, pod)
  }
  time.runUntil(Number.POSITIVE_INFINITY)
  const { conversations } = gateway
  return summariseReplay(trace, { policy, settings, ttftsMs, prefills, pods, conversations })
}
