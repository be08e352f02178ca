import { nanoid } from 'nanoid'
import type { SessionStoreOptions } from '../limits.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionDirectory } from '../session-directory.ts'
import type { SessionStore } from '../session-store.ts'
import { MemoryDirectory } from './memory-directory.ts'
import { MemoryNamedTurns } from './memory-named-turns.ts'
import { MemoryRemovals } from './memory-removals.ts'
import { MemorySessions } from './memory-sessions.ts'
import { MemoryStoredKv } from './memory-stored-kv.ts'
import type { MemoryWatch } from './process-memory.ts'
import { SessionTable } from './session-table.ts'

export interface MemorySessionStoreOptions extends SessionStoreOptions {
  /**
   * Live sessions at most, up to 10,000,000. At the limit, expired sessions end first, then the least recently used
   * one, weighted by size, that no turn holds: it ends as if it had expired. Default 100000. There are at most as many
   * tombstones.
   */
  readonly maxSessions?: number
  /** Evicts sessions while the process uses more than this share, 0 to 1, of its memory limit. Default: no limit. */
  readonly memory?: { readonly watch: MemoryWatch; readonly threshold: number }
  /** The store's clock, in milliseconds since 1970. Default `Date.now`. */
  readonly nowMs?: () => number
}

/** Room for sessions even when memory is short: some eighty of them. */
const leastSessionsBytes = 65_536

/** Sessions and their removal queue in this process: a restart forgets them. Operations are O(1) or O(log n). */
export const createMemorySessionStore = ({
  maxSessions = 100_000,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  tenantLimits = () => ({}),
  memory,
  nowMs = Date.now,
  onEvicted = () => {},
}: MemorySessionStoreOptions = {}): SessionStore & RemovalQueue & SessionDirectory => {
  const identity = nanoid()
  const removals = new MemoryRemovals()
  const table = new SessionTable({ removals, maxSessions, tombstoneSeconds, tenantLimits, onEvicted })
  const directory = new MemoryDirectory(table)
  const storedKv = new MemoryStoredKv({ table, removals, supersededGraceMs, kvLimit, onEvicted })
  const sessions = new MemorySessions({ table, directory, storedKv, removals })
  const named = new MemoryNamedTurns({ table, storedKv, removals })
  const stopWatch = memory?.watch(({ usedBytes, limitBytes }) => {
    // Something else may fill the memory: one reading evicts at most half of the sessions, and never the last few.
    const roomBytes = limitBytes * memory.threshold - usedBytes
    table.setCeiling(Math.max(leastSessionsBytes, table.bytes / 2, table.bytes + roomBytes))
  })

  return {
    create: async (session) => sessions.create(session, nowMs()),
    begin: async (turn) => sessions.begin(turn, nowMs()),
    beginNamed: async (turn) => named.begin(turn, nowMs()),
    fork: async (fork) => sessions.fork(fork, nowMs()),
    complete: async (turn) => sessions.complete(turn, nowMs()),
    abandon: async (turn) => sessions.abandon(turn, nowMs()),
    commitKv: async (commit) => storedKv.commit(commit, nowMs()),
    setKvStatus: async (change) => sessions.setKvStatus(change, nowMs()),
    dropArtefacts: async ({ artefactIds, reason }) =>
      artefactIds.filter((id) => storedKv.drop(id, reason, nowMs())).length,
    get: async ({ key, tenant }) => sessions.get(key, tenant, nowMs()),
    list: async ({ tenant, after, limit }) => directory.list(tenant, after, limit, nowMs()),
    setTtl: async ({ key, tenant, ttlSeconds }) => sessions.setTtl(key, tenant, ttlSeconds, nowMs()),
    remove: async ({ key, tenant }) => sessions.remove(key, tenant, nowMs()),
    find: async (key) => directory.find(key, nowMs()),
    page: async (query) => directory.page(query, nowMs()),
    countNamed: async (tenant) => table.countNamed(tenant),
    areTogether: () => true,
    identity: async () => identity,
    close: async () => stopWatch?.(),
    announce: async ({ session, graceMs, ...artefact }) => removals.announce(session, artefact, nowMs() + graceMs),
    expireDue: async (limit) => {
      const ended = table.expireDue(limit, nowMs())
      return { ended, hasMore: ended >= limit }
    },
    evict: async (limit) => {
      const freed = table.relieve(limit, nowMs())
      return freed >= limit ? freed : freed + storedKv.evict(limit - freed, nowMs())
    },
    recount: async () => false,
    claim: async (options) => removals.claim(options, nowMs()),
    ack: async (claimed) => {
      for (const each of claimed) removals.ack(each, nowMs())
    },
    retryLater: async (claimed, delayMs) => removals.retryLater(claimed, nowMs() + delayMs),
    knownArtefacts: async (ids) => new Set(ids.filter((id) => table.kv.find(id) !== undefined || removals.names(id))),
    counts: async () => ({ removals: removals.size, sessions: table.size }),
    sizes: async () => ({ kvBytes: table.kv.bytes, sessionBytes: table.bytes }),
  }
}
