import type { FleetSettings } from './fleet-settings.ts'
import type { Prefill, SimulatedPod } from './simulated-pod.ts'
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
  /** Prefill time over the time in which it could have been done, from the first arrival to the last: above 1 the fleet falls behind. */
  readonly utilisation: number
  /** From the first arrival to the end of the last response. */
  readonly elapsedSeconds: number
}

/** Collects what happens in a replay. */
export const createReplayRecord = (options: { readonly policy: string; readonly settings: FleetSettings }) => {
  const ttfts: number[] = []
  let firstMs: number | undefined
  let lastMs = 0
  let blocks = 0
  let reusedBlocks = 0
  let heldBlocks = 0

  return {
    arrived: (request: TraceRequest, timeMs: number): void => {
      firstMs ??= timeMs
      lastMs = timeMs
      blocks += request.blocks.length
    },
    reused: (prefill: Prefill): void => {
      reusedBlocks += prefill.reusedBlocks
      heldBlocks += prefill.heldBlocks
    },
    firstToken: (ttftMs: number): void => void ttfts.push(ttftMs),
    result: (end: {
      readonly pods: readonly SimulatedPod[]
      readonly conversations: number
      readonly endedMs: number
    }): ReplayResult => {
      const { pods, conversations, endedMs } = end
      const sorted = Float64Array.from(ttfts).sort()
      const prefills = pods.map((pod) => pod.busyMs().prefill)
      const prefillMs = sum(prefills)
      const capacityMs = options.settings.pods * (lastMs - (firstMs ?? 0))
      return {
        policy: options.policy,
        requests: sorted.length,
        conversations,
        blockHitRatio: ratio(reusedBlocks, blocks),
        podHitRatio: ratio(heldBlocks, blocks),
        ttftMs: {
          mean: ratio(sum(ttfts), sorted.length),
          p50: percentile(sorted, 0.5),
          p90: percentile(sorted, 0.9),
          p99: percentile(sorted, 0.99),
        },
        loadSeconds: sum(pods.map((pod) => pod.busyMs().load)) / 1000,
        prefillSeconds: prefillMs / 1000,
        balance: ratio(Math.max(...prefills), prefillMs / pods.length),
        utilisation: ratio(prefillMs, capacityMs),
        elapsedSeconds: (endedMs - (firstMs ?? 0)) / 1000,
      }
    },
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

const ratio = (part: number, whole: number): number => (whole > 0 ? part / whole : 0)

/** The smallest of the sorted numbers that at least `share` (0 to 1) of them do not exceed; 0 where there are none. */
export const percentile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length, Math.max(1, Math.ceil(share * sorted.length))) - 1] ?? 0
