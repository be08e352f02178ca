import type { CachedResponse } from '../responsecache/response-cache.ts'
import type { Decision } from './context-cache-manager.ts'

/** Tells a client whether its answer was computed for it. Only where the request could have been answered from the response cache. */
export const responseCacheHeader = 'x-response-cache'

/** An earlier answer to the same request, of which `model` is what it names. */
export interface CachedAnswer {
  readonly model: string
  readonly response: CachedResponse
}

/** Sends an earlier answer again, with these headers beside those that tell what it is. */
export const replayAnswer = (
  { response }: CachedAnswer,
  headers: Readonly<Record<string, string>> = {},
): Extract<Decision, { kind: 'replay' }> => ({
  kind: 'replay',
  contentType: response.contentType,
  body: response.body,
  headers: { ...headers, [responseCacheHeader]: 'hit' },
})
