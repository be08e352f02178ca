import TinyQueue from 'tinyqueue'
import type { RandomSource } from '../../src/routing/pod.ts'
import type { PolicyName } from '../../src/routing/policies.ts'
import { createBlockCache } from './block-cache.ts'
import { type FleetSettings, loadOverheadMs, metricsIntervalMs } from './fleet-settings.ts'
import { type ReplayResult, summariseReplay } from './replay-record.ts'
import { createSimulatedGateway, type RoutedTurn } from './simulated-gateway.ts'
import { createSimulatedPod, type Prefill, type SimulatedPod } from './simulated-pod.ts'
import { blockTokens, type TraceRequest } from './trace.ts'

const seed = 20_250_225

/** Events happen in the order of time; those of one time in the order in which they were added. */
interface SimulationEvent {
  readonly timeMs: number
  readonly order: number
  readonly happen: () => void
}

/** Replays a trace on a fleet, in virtual time, under one policy: requests come when it says, in any case. */
export const replayTrace = (
  trace: readonly TraceRequest[],
  { settings, policy }: { readonly settings: FleetSettings; readonly policy: PolicyName },
): ReplayResult => {
  let nowMs = 0
  const events = new TinyQueue<SimulationEvent>([], (a, b) => a.timeMs - b.timeMs || a.order - b.order)
  let scheduled = 0
  const at = (timeMs: number, happen: () => void): void => {
    scheduled += 1
    events.push({ timeMs, order: scheduled, happen })
  }
  const gateway = createSimulatedGateway({ settings, policy, nowMs: () => nowMs, random: createSeededRandom(seed) })
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
    at(nowMs + prefill.durationMs, () => {
      pod.prefillDone()
      store.use(job.request.blocks, job.request.blocks.length)
      job.onFirstToken(prefill.computedTokens)
      at(nowMs + (job.request.outputTokens * 1000) / settings.decodeTokensPerSecond, () => {
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
        ttftsMs.push(nowMs - has.arrivedMs)
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
    const budgetMs = gateway.planLoad(turn, { podTokens: held * blockTokens, storeTokens: stored * blockTokens })
    if (budgetMs === undefined) {
      forward(turn, pod, { arrivedMs, presentBlocks: held })
      return
    }
    const tokens = (stored - held) * blockTokens
    const doneMs = pod.load(nowMs, tokens)
    const inTime = doneMs - nowMs <= budgetMs
    at(Math.min(doneMs, nowMs + budgetMs), () => {
      gateway.loadEnded(turn, inTime ? { tokens, tookMs: nowMs - arrivedMs } : undefined)
      forward(turn, pod, { arrivedMs, presentBlocks: inTime ? stored : held })
    })
  }

  const runUntil = (timeMs: number): void => {
    for (let next = events.peek(); next !== undefined && next.timeMs <= timeMs; next = events.peek()) {
      events.pop()
      nowMs = next.timeMs
      next.happen()
    }
  }

  for (const request of trace) {
    const arrivesMs = request.timestampMs * settings.timeScale
    while (nextMetricsMs <= arrivesMs) {
      runUntil(nextMetricsMs)
      gateway.readMetrics(pods.map((pod) => pod.reading()))
      nextMetricsMs += metricsIntervalMs
    }
    runUntil(arrivesMs)
    nowMs = arrivesMs
    const turn = gateway.route(request)
    const pod = pods[turn.podIndex]
    if (pod === undefined) throw new Error(`There is no ${turn.pod}`)
    attach(turn, pod)
  }
  runUntil(Number.POSITIVE_INFINITY)
  const { conversations } = gateway
  return summariseReplay(trace, { policy, settings, ttftsMs, prefills, pods, conversations })
}

/** The same numbers for the same seed, so that a replay gives the same result each time (mulberry32). */
const createSeededRandom = (start: number): RandomSource => {
  let state = start | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const first = Math.imul(state ^ (state >>> 15), state | 1)
    const second = (first + Math.imul(first ^ (first >>> 7), first | 61)) ^ first
    return ((second ^ (second >>> 14)) >>> 0) / 4_294_967_296
  }
}
