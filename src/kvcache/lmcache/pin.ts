import type { TokenPrefix } from './lmcache-client.ts'
import type { Parts } from './parts.ts'

/** Keeps a prefix from eviction. Without its pin it is stored all the same; LMCache may only evict it earlier. */
export const pin = async (parts: Parts, prefix: TokenPrefix, signal: AbortSignal): Promise<void> => {
  try {
    await parts.lmcache.pin(prefix, signal)
  } catch (error) {
    parts.log.warn('stored KV could not be pinned', { err: error })
  }
}
