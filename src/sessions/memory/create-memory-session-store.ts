import type { Evicted, KvLimit } from '../eviction.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionStore } from '../session-store.ts'
import { MemoryRemovals } from './memory-removals.ts'
import { MemorySessions } from './memory-sessions.ts'
import type { MemoryWatch } from './process-memory.ts'
import { createSessionArtefacts } from './session-artefacts.ts'
import { SessionTable } from './session-table.ts'

export interface MemorySessionStoreOptions {
  /**
   * Live sessions at most. At the limit, sessions whose time is over go first, then the least recently used one, weighted by size, that no
   * turn holds: it ends as if its time were over. Default 100000.
   */
  readonly maxSessions?: number
  /** How long an ended session is remembered. Default 86400. There are never more tombstones than `maxSessions`. */
  readonly tombstoneSeconds?: number
  /** How long a replaced artefact stays, since a load may still be reading it. Default 5000. */
  readonly supersededGraceMs?: number
  /** Default: no limit. */
  readonly kvLimit?: KvLimit | undefined
  /** Sessions may take what the process has left below this share of its memory, 0 to 1. Default: whatever they need. */
  readonly memory?: { readonly watch: MemoryWatch; readonly threshold: number }
  /** The store's clock, in milliseconds since 1970. Default `Date.now`. */
  readonly nowMs?: () => number
  /** Called for everything that had to make room. */
  readonly onEvicted?: (what: Evicted, count: number) => void
}

/** However short memory is. About forty sessions. */
const leastSessionsBytes = 65_536

/**
 * Sessions and their removal queue in this process, for a gateway without Redis. A restart forgets them all. Every operation is O(1) or
 * O(log n) in the number of sessions.
 */
export const createMemorySessionStore = ({
  maxSessions = 100_000,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  memory,
  nowMs = Date.now,
  onEvicted = () => {},
}: MemorySessionStoreOptions = {}): SessionStore & RemovalQueue => {
  const removals = new MemoryRemovals()
  const table = new SessionTable({ removals, maxSessions, tombstoneSeconds, kvLimit, onEvicted })
  const sessions = new MemorySessions({ table, removals })
  const artefacts = createSessionArtefacts({ table, removals, supersededGraceMs })
  memory?.watch.start(({ usedBytes, limitBytes, includesExternal = false }) => {
    // What fills the memory may be something else: one reading never ends more than half, and a few sessions are always possible.
    const roomBytes = limitBytes * memory.threshold - usedBytes + (includesExternal ? table.spareBytes : 0)
    table.setCeiling(Math.max(leastSessionsBytes, table.bytes / 2, table.bytes + roomBytes))
  })

  return {
    create: async (session) => sessions.create(session, nowMs()),
    begin: async (turn) => sessions.begin(turn, nowMs()),
    complete: async (turn) => sessions.complete(turn, nowMs()),
    abandon: async (turn) => sessions.abandon(turn, nowMs()),
    commitKv: async (commit) => artefacts.commit(commit, nowMs()),
    noteKv: async (note) => artefacts.note(note, nowMs()),
    dropKv: async (drop) => artefacts.drop(drop, nowMs()),
    dropArtefacts: async (drop) => artefacts.dropAll(drop, nowMs()),
    get: async ({ key, tenant }) => sessions.get(key, tenant, nowMs()),
    list: async ({ tenant, after, limit }) => sessions.list(tenant, after, limit, nowMs()),
    setTtl: async ({ key, tenant, ttlSeconds }) => sessions.setTtl(key, tenant, ttlSeconds, nowMs()),
    remove: async ({ key, tenant }) => sessions.remove(key, tenant, nowMs()),
    ping: async () => {},
    close: async () => memory?.watch.stop(),
    announce: async ({ session, graceMs, ...artefact }) => removals.announce(session, artefact, nowMs() + graceMs),
    expireDue: async (limit) => {
      const ended = table.expireDue(limit, nowMs())
      return { ended, hasMore: ended >= limit }
    },
    evict: async (limit) => table.evict(limit, nowMs()),
    claim: async (options) => removals.claim(options, nowMs()),
    settle: async (claimed) => {
      for (const each of claimed) removals.settle(each, nowMs())
    },
    postpone: async (claimed, delayMs) => removals.postpone(claimed, nowMs() + delayMs),
    knownArtefacts: async (ids) => new Set(ids.filter((id) => table.ownerOf(id) !== undefined || removals.names(id))),
    counts: async () => ({ removals: removals.size, sessions: table.size }),
    sizes: async () => ({ kvBytes: table.kvBytes, sessionBytes: table.bytes }),
  }
}
