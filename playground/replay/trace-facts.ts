import { createBlockCache } from './block-cache.ts'
import type { FleetSettings } from './fleet-settings.ts'
import { blockTokens, type TraceRequest } from './trace-request.ts'

/** What a trace is, whatever fleet it meets. */
export interface TraceFacts {
  readonly requests: number
  readonly blocks: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** From the first request to the last, by the trace's own clock. */
  readonly seconds: number
  /** Share of blocks that an unlimited cache would have, were every request over before the next one came: no fleet has more. */
  readonly highestHitRatio: number
  /** The same for one cache as large as the store. */
  readonly storeHitRatio: number
  /** Tokens that remain to be computed with the highest hit ratio. */
  readonly leastTokens: number
}

/** Takes down a trace as it passes. */
export interface TraceSurvey {
  add(request: TraceRequest): void
  facts(): TraceFacts
}

export const createTraceSurvey = (options: { readonly storeBlocks: number }): TraceSurvey => {
  const unlimited = createBlockCache({ maxBlocks: Number.POSITIVE_INFINITY })
  const store = createBlockCache({ maxBlocks: options.storeBlocks })
  let requests = 0
  let blocks = 0
  let inputTokens = 0
  let outputTokens = 0
  let leastTokens = 0
  let highestHits = 0
  let storeHits = 0
  let firstMs: number | undefined
  let lastMs = 0

  return {
    add: (request) => {
      requests += 1
      blocks += request.blocks.length
      inputTokens += request.inputTokens
      outputTokens += request.outputTokens
      firstMs ??= request.timestampMs
      lastMs = request.timestampMs
      const reusable = unlimited.heldPrefix(request.blocks)
      highestHits += reusable
      leastTokens += Math.max(1, request.inputTokens - reusable * blockTokens)
      storeHits += store.heldPrefix(request.blocks)
      unlimited.use(request.blocks, request.blocks.length)
      store.use(request.blocks, request.blocks.length)
    },
    facts: () => ({
      requests,
      blocks,
      inputTokens,
      outputTokens,
      seconds: (lastMs - (firstMs ?? 0)) / 1000,
      highestHitRatio: blocks === 0 ? 0 : highestHits / blocks,
      storeHitRatio: blocks === 0 ? 0 : storeHits / blocks,
      leastTokens,
    }),
  }
}

/** The share of the fleet's prefill time that a trace takes: with all reuse that is possible, and with none. */
export const fleetLoad = (
  facts: TraceFacts,
  settings: FleetSettings,
): { readonly least: number; readonly withoutReuse: number } => {
  const tokens = settings.pods * settings.prefillTokensPerSecond * facts.seconds * settings.timeScale
  return tokens > 0
    ? { least: facts.leastTokens / tokens, withoutReuse: facts.inputTokens / tokens }
    : { least: 0, withoutReuse: 0 }
}
