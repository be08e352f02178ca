import { createBlockCache } from './block-cache.ts'
import type { FleetSettings } from './fleet-settings.ts'
import { blockTokens, type TraceRequest } from './trace.ts'

/** A request inside a pod. */
export interface PodJob {
  readonly request: TraceRequest
  /** Blocks that were in the pod when it was forwarded, from the first on: in use, and kept for it until it has run. */
  readonly presentBlocks: number
  onFirstToken(computedTokens: number): void
  onComplete(): void
}

/** What the engine found when it began with a prompt. */
export interface Prefill {
  readonly durationMs: number
  /** Of the blocks, those that need not be computed. */
  readonly reusedBlocks: number
  /** Of them, those that lay in the pod. */
  readonly heldBlocks: number
  readonly computedTokens: number
}

/**
 * One engine: it computes prompts one after the other in the order of arrival, generates beside that, keeps blocks of
 * KV, and loads KV one piece after the other. Times are virtual, and given by the caller.
 */
export const createSimulatedPod = (settings: FleetSettings, loadMs: (tokens: number) => number) => {
  const blocks = createBlockCache({ maxBlocks: settings.podBlocks })
  const queue: PodJob[] = []
  let computing = false
  let running = 0
  let usedBlocks = 0
  let prefillBusyMs = 0
  let loadBusyMs = 0
  let loadFreeMs = 0

  return {
    blocks,
    /** Fields of an engine's metrics that routing reads. */
    reading: () => ({
      running,
      waiting: queue.length,
      kvUsage: settings.podBlocks > 0 ? Math.min(1, usedBlocks / settings.podBlocks) : 0,
    }),
    busyMs: (): { readonly prefill: number; readonly load: number } => ({ prefill: prefillBusyMs, load: loadBusyMs }),
    /** Queues a load. Returns when it will be done. */
    load: (nowMs: number, tokens: number): number => {
      const durationMs = loadMs(tokens)
      loadFreeMs = Math.max(nowMs, loadFreeMs) + durationMs
      loadBusyMs += durationMs
      return loadFreeMs
    },
    enqueue: (job: PodJob): void => void queue.push(job),
    /** Begins with the next prompt, if the engine is free and one waits. */
    begin: (): { readonly job: PodJob; readonly prefill: Prefill } | undefined => {
      if (computing) return undefined
      const job = queue.shift()
      if (job === undefined) return undefined
      computing = true
      running += 1
      const { request } = job
      usedBlocks += request.blocks.length
      const heldBlocks = blocks.heldPrefix(request.blocks)
      const reusedBlocks = Math.max(heldBlocks, job.presentBlocks)
      blocks.use(request.blocks, request.blocks.length)
      // The last token is always computed: the first one that is generated comes out of it.
      const computedTokens = Math.max(1, request.inputTokens - reusedBlocks * blockTokens)
      const durationMs = (computedTokens * 1000) / settings.prefillTokensPerSecond
      prefillBusyMs += durationMs
      return { job, prefill: { durationMs, reusedBlocks, heldBlocks, computedTokens } }
    },
    /** The prompt is computed: generating begins. */
    prefillDone: (): void => {
      computing = false
    },
    /** The answer is complete. */
    generated: (job: PodJob): void => {
      running -= 1
      usedBlocks -= job.request.blocks.length
    },
  }
}

export type SimulatedPod = ReturnType<typeof createSimulatedPod>
