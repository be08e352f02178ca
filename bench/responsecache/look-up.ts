import type { GatewayRequest } from '../../src/context/context-cache-manager.ts'
import { createResponseCacheHandler } from '../../src/context/response-cache-handler.ts'
import { createTenants } from '../../src/context/tenant.ts'
import { createAnswerCaptures } from '../../src/responsecache/answer-capture.ts'
import { createByteBudget } from '../../src/responsecache/byte-budget.ts'
import { createMemoryResponseCache } from '../../src/responsecache/memory-response-cache.ts'
import { median } from '../statistics.ts'

const rounds = 500

const headers: Readonly<Record<string, string>> = { authorization: 'Bearer bench', 'x-response-cache': 'on' }

const request: GatewayRequest = {
  method: 'POST',
  path: '/v1/completions',
  header: (name) => {
    const value = headers[name]
    return value === undefined ? [] : [value]
  },
  endOfStream: false,
  bodyReadable: true,
}

/** Everything that the gateway does for a request because of the cache and does not find: reading, sorting, hashing, looking. The median of many. */
export const lookUpMicroseconds = async (body: string): Promise<number> => {
  const maxEntryBytes = 1_048_576
  const cache = createMemoryResponseCache({ maxBytes: 100_000_000, maxEntryBytes, onEvicted: () => {} })
  const handle = createResponseCacheHandler(
    {
      cache,
      beginCapture: createAnswerCaptures({ cache, budget: createByteBudget(100_000_000), maxEntryBytes }),
      tenants: createTenants({ secret: 'a secret for a benchmark that is long enough', principalHeader: undefined }),
      models: ['tiny-random'],
      onLookup: () => {},
    },
    { maxJsonDepth: 64, maxJsonKeys: 20_000 },
  )
  const bytes = Buffer.from(body)
  const scope = { signal: new AbortController().signal, extendDeadline: () => {} }
  const taken: number[] = []
  for (let round = -100; round < rounds; round += 1) {
    const startedMs = performance.now()
    const asked = handle(request, 'completions', async () => ({ kind: 'passthrough', destinations: [] }))
    const decision = asked?.kind === 'need-body' ? await asked.decide(bytes, scope) : undefined
    const endedMs = performance.now()
    if (decision?.kind !== 'passthrough' || decision.observer === undefined)
      throw new Error('the request was not looked up')
    decision.observer.end('broken')
    if (round >= 0) taken.push((endedMs - startedMs) * 1000)
  }
  return median(taken)
}
