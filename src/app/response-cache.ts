import type { Config } from '../config/config.ts'
import { type CachedAnswers, createCachedAnswers } from '../context/cached-answers.ts'
import type { Tenants } from '../context/tenant.ts'
import { createAnswerCaptures } from '../responsecache/answer-capture.ts'
import { createByteBudget } from '../responsecache/byte-budget.ts'
import { createMemoryResponseCache } from '../responsecache/memory-response-cache.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** The response cache with all that belongs to it; undefined when it is off, or no model may use it. */
export const createResponseCaching = (
  config: Config,
  parts: { readonly tenants: Tenants; readonly metrics: Metrics },
): CachedAnswers | undefined => {
  const { models, maxBytes, maxEntryBytes } = config.responseCache
  if (maxBytes === 0 || models.length === 0) return undefined
  const { metrics, tenants } = parts
  const cache = createMemoryResponseCache({ maxBytes, maxEntryBytes, onEvicted: metrics.responseEvicted })
  metrics.beforeRender(() => metrics.setResponseCache(cache.size()))
  return createCachedAnswers(
    {
      cache,
      beginCapture: createAnswerCaptures({ cache, budget: createByteBudget(maxBytes), maxEntryBytes }),
      tenants,
      onLookup: metrics.responseLookedUp,
    },
    { ...config.turns, models },
  )
}
