import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { Evicted, KvLimit } from '../limits.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionStore } from '../session-store.ts'
import { createRedisRemovals } from './redis-removals.ts'
import { createRedisSessions } from './redis-sessions.ts'
import { createScriptRunner } from './session-script-runner.ts'

export interface RedisSessionStoreOptions {
  /** Its key prefix keeps several gateways' sessions apart in one Redis. `close` closes it. */
  readonly connection: RedisConnection
  /** How long a tombstone is kept. Default 86400. */
  readonly tombstoneSeconds?: number
  /** How long a replaced artefact is kept for loads that are still reading it. Default 5000. */
  readonly supersededGraceMs?: number
  /** The same for every gateway that shares the store. Default: no limit. */
  readonly kvLimit?: KvLimit | undefined
  /** Called for every unreadable record that was dropped. */
  readonly onCorrupted?: () => void
  /** Called for every eviction of stored KV. */
  readonly onEvicted?: (what: Evicted, count: number) => void
}

/**
 * Sessions and their removal queue in one Redis (7.0 or newer), shared by any number of gateways. Every method is one Lua script, so one
 * atomic step and one round trip. Redis Cluster is not supported: a script touches keys of several slots. Redis must not evict keys
 * (`maxmemory-policy noeviction`); when it is full, creating fails, while reading, deleting and expiring go on. Deadlines are times of the
 * server's clock: the clocks of servers that may take over from each other must agree.
 */
export const createRedisSessionStore = ({
  connection,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  onCorrupted = () => {},
  onEvicted = () => {},
}: RedisSessionStoreOptions): SessionStore & RemovalQueue => {
  const run = createScriptRunner({ connection, tombstoneSeconds, onCorrupted })
  return {
    ...createRedisSessions({ connection, run, supersededGraceMs, kvLimit, onEvicted }),
    ...createRedisRemovals({ run, kvLimit, onEvicted }),
  }
}
