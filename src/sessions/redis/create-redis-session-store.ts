import { nanoid } from 'nanoid'
import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { SessionStoreOptions } from '../limits.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionDirectory } from '../session-directory.ts'
import type { SessionStore } from '../session-store.ts'
import { createLimitedTurns } from './limited-turns.ts'
import { createPartitions } from './partitions.ts'
import { createRedisLists } from './redis-lists.ts'
import { createRedisRemovals } from './redis-removals.ts'
import { createRedisSessions } from './redis-sessions.ts'
import { createRedisStoredKv } from './redis-stored-kv.ts'
import { createTenantLedger } from './tenant-ledger.ts'

export interface RedisSessionStoreOptions extends SessionStoreOptions {
  /** Its key prefix keeps several gateways' sessions apart in one Redis. `close` closes it. */
  readonly connection: RedisConnection
  /** Into how many partitions a new store is split, 1 to 1024. Default 1. */
  readonly partitionsOfNewStore?: number
  /** How many partitions the store must have. Default: as many as it has. */
  readonly partitions?: number | undefined
  /** Called for every unreadable record that was dropped. */
  readonly onCorrupted?: () => void
}

/**
 * Sessions and their removal queue in Redis (7.0 or newer), shared by any number of gateways. A session lies in a
 * partition with everything that belongs to it; what touches it alone is one Lua script: one atomic step, one round trip.
 * What is of several partitions (lists, counts, limits, room for KV) is put together from a step on each, and may miss
 * what others change meanwhile. Every script declares its keys, and they lie in one slot of a cluster.
 * Redis must not evict keys (`maxmemory-policy noeviction`); when it is full, creating fails, while reading, deleting
 * and expiring go on. Deadlines follow the server's clock: servers that replace each other must agree on the time.
 * @throws StoreLayoutError from every method when Redis has the store of another layout.
 */
export const createRedisSessionStore = ({
  connection,
  partitionsOfNewStore = 1,
  partitions: wantedPartitions,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  tenantLimits = () => ({}),
  onCorrupted = () => {},
  onEvicted = () => {},
}: RedisSessionStoreOptions): SessionStore & RemovalQueue & SessionDirectory => {
  const partitions = createPartitions({
    connection,
    tombstoneSeconds,
    onCorrupted,
    partitionsOfNewStore,
    wantedPartitions,
  })
  const ledger = createTenantLedger(connection)
  const turns = createLimitedTurns({ partitions, ledger, tenantLimits })
  return {
    ...createRedisSessions({ partitions, turns, tenantLimits }),
    ...createRedisStoredKv({ partitions, ledger, supersededGraceMs, kvLimit, tenantLimits, onEvicted }),
    ...createRedisRemovals({ partitions, gateway: nanoid(), kvLimit }),
    ...createRedisLists(partitions),
    identity: () => partitions.identity(),
    areTogether: (text, other) => partitions.areTogether(text, other),
    close: () => connection.close(),
  }
}
