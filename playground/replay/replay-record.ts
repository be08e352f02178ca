import { type FleetSettings, podsAtATime } from './fleet-settings.ts'
import type { Prefill, SimulatedPod } from './simulated-pod.ts'
import type { SlotFigures } from './slots/slot-figures.ts'
import { percentile, ratio, sum } from './statistics.ts'
import type { TraceRequest } from './trace.ts'

/** The outcome of one replay. All times are virtual. */
export interface ReplayResult {
  readonly policy: string
  readonly requests: number
  readonly conversations: number
  /** Share of all blocks that were not computed: they lay in the pod or were loaded. */
  readonly blockHitRatio: number
  /** Its part that lay in the pod. */
  readonly podHitRatio: number
  /** From a request's arrival to its first token, milliseconds. */
  readonly ttftMs: { readonly mean: number; readonly p50: number; readonly p90: number; readonly p99: number }
  /** Time that pods spent on loading and on computing prompts, added up. */
  readonly loadSeconds: number
  readonly prefillSeconds: number
  /** Prefill time of the busiest pod over that of the average pod: 1 is even. */
  readonly balance: number
  /** Prefill time over the time that there was for it, from first to last arrival: above 1 the fleet falls behind. */
  readonly utilisation: number
  /** Undefined: the pods have no slots. */
  readonly slots?: SlotFigures
}

/** Sums a replay up. */
export const summariseReplay = (
  trace: readonly TraceRequest[],
  replay: {
    readonly policy: string
    readonly settings: FleetSettings
    readonly ttftsMs: readonly number[]
    readonly prefills: readonly Prefill[]
    readonly pods: readonly Pick<SimulatedPod, 'busyMs'>[]
    readonly conversations: number
  },
): ReplayResult => {
  const { policy, settings, pods, prefills, conversations } = replay
  const ttftsMs = Float64Array.from(replay.ttftsMs).sort()
  const blocks = sum(trace.map((request) => request.blocks.length))
  const arrivedMs = (request: TraceRequest | undefined) => (request?.timestampMs ?? 0) * settings.timeScale
  const firstMs = arrivedMs(trace[0])
  const busyMs = pods.map((pod) => pod.busyMs())
  const prefillMs = busyMs.map(({ prefill }) => prefill)
  return {
    policy,
    requests: ttftsMs.length,
    conversations,
    blockHitRatio: ratio(sum(prefills.map(({ reusedBlocks }) => reusedBlocks)), blocks),
    podHitRatio: ratio(sum(prefills.map(({ heldBlocks }) => heldBlocks)), blocks),
    ttftMs: {
      mean: ratio(sum(replay.ttftsMs), ttftsMs.length),
      p50: percentile(ttftsMs, 0.5),
      p90: percentile(ttftsMs, 0.9),
      p99: percentile(ttftsMs, 0.99),
    },
    loadSeconds: sum(busyMs.map(({ load }) => load)) / 1000,
    prefillSeconds: sum(prefillMs) / 1000,
    balance: ratio(Math.max(...prefillMs), sum(prefillMs) / pods.length),
    utilisation: ratio(sum(prefillMs), podsAtATime(settings) * (arrivedMs(trace.at(-1)) - firstMs)),
  }
}
