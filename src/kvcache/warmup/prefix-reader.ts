import { LRUCache } from 'lru-cache'
import type { StoredKv } from '../../sessions/session-record.ts'
import { parseWarmPrefix, type WarmPrefix } from './warm-prefix.ts'

/** Texts of at most some 25 KB, mostly of 200 bytes. */
const maxKnown = 1_000

/** What is stored for a session, read; undefined where it cannot be. Every turn asks, and a session's text changes only when another pod has computed it. */
export type PrefixReader = (kv: StoredKv) => WarmPrefix | undefined

/** Remembers what it has read. */
export const createPrefixReader = (): PrefixReader => {
  const known = new LRUCache<string, { readonly prefix: WarmPrefix | undefined }>({
    max: maxKnown,
    memoMethod: (payload) => ({ prefix: parseWarmPrefix(payload) }),
  })
  return ({ payload }) => known.memo(payload).prefix
}
