import type { Config } from '../config/config.ts'
import type { ResponseCacheParts } from '../context/response-cache-handler.ts'
import { createAnswerCaptures } from '../responsecache/answer-capture.ts'
import { createByteBudget } from '../responsecache/byte-budget.ts'
import { createMemoryResponseCache } from '../responsecache/memory-response-cache.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** The response cache; undefined when it is off, or no model may use it. */
export const createResponseCaching = (config: Config, metrics: Metrics): ResponseCacheParts | undefined => {
  const { models, maxBytes, maxEntryBytes } = config.responseCache
  if (maxBytes === 0 || models.length === 0) return undefined
  const cache = createMemoryResponseCache({ maxBytes, maxEntryBytes, onEvicted: metrics.responseEvicted })
  metrics.beforeRender(() => metrics.setResponseCache(cache.size()))
  return {
    cache,
    beginCapture: createAnswerCaptures({ cache, budget: createByteBudget(maxBytes), maxEntryBytes }),
    models,
    onLookup: metrics.responseLookedUp,
  }
}
