import { createBlockCache } from './block-cache.ts'
import { type FleetSettings, podsAtATime } from './fleet-settings.ts'
import { blockTokens, type TraceRequest } from './trace.ts'

/** What a trace is, whatever fleet it meets. */
export interface TraceFacts {
  readonly requests: number
  readonly blocks: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** From the first request to the last, by the trace's own clock. */
  readonly seconds: number
  /** Share of blocks that an unlimited cache would have, were requests over when the next came: no fleet has more. */
  readonly highestHitRatio: number
  /** The same for one cache as large as the store. */
  readonly storeHitRatio: number
  /** Tokens that remain to be computed with the highest hit ratio. */
  readonly leastTokens: number
}

/** Surveys a trace of at least one request. */
export const surveyTrace = (
  trace: readonly TraceRequest[],
  { storeBlocks }: { readonly storeBlocks: number },
): TraceFacts => {
  const unlimited = createBlockCache({ maxBlocks: Number.POSITIVE_INFINITY })
  const store = createBlockCache({ maxBlocks: storeBlocks })
  const sum = { blocks: 0, inputTokens: 0, outputTokens: 0, leastTokens: 0, highestHits: 0, storeHits: 0 }
  for (const request of trace) {
    sum.blocks += request.blocks.length
    sum.inputTokens += request.inputTokens
    sum.outputTokens += request.outputTokens
    const reusable = unlimited.heldPrefix(request.blocks)
    sum.highestHits += reusable
    sum.leastTokens += Math.max(1, request.inputTokens - reusable * blockTokens)
    sum.storeHits += store.heldPrefix(request.blocks)
    for (const cache of [unlimited, store]) cache.use(request.blocks, request.blocks.length)
  }
  const { highestHits, storeHits, ...facts } = sum
  return {
    ...facts,
    requests: trace.length,
    seconds: ((trace.at(-1)?.timestampMs ?? 0) - (trace[0]?.timestampMs ?? 0)) / 1000,
    highestHitRatio: highestHits / facts.blocks,
    storeHitRatio: storeHits / facts.blocks,
  }
}

/** The share of the fleet's prefill time that a trace takes: with all reuse that is possible, and with none. */
export const fleetLoad = (
  facts: TraceFacts,
  settings: FleetSettings,
): { readonly least: number; readonly withoutReuse: number } => {
  const tokens = podsAtATime(settings) * settings.prefillTokensPerSecond * facts.seconds * settings.timeScale
  const share = (needed: number): number => (tokens > 0 ? needed / tokens : 0)
  return { least: share(facts.leastTokens), withoutReuse: share(facts.inputTokens) }
}
