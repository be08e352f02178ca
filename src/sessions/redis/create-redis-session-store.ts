import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { Evicted, KvLimit } from '../limits.ts'
import type { RemovalQueue } from '../removal-queue.ts'
import type { SessionStore } from '../session-store.ts'
import { createRedisRemovals } from './redis-removals.ts'
import { createRedisSessions } from './redis-sessions.ts'
import { createSessionScripts } from './session-script-runner.ts'

export interface RedisSessionStoreOptions {
  /** Its key prefix keeps several gateways' sessions apart in one Redis. `close` closes it. */
  readonly connection: RedisConnection
  /** How long an ended session is remembered. Default 86400. */
  readonly tombstoneSeconds?: number
  /** How long a replaced artefact stays, since a load may still be reading it. Default 5000. */
  readonly supersededGraceMs?: number
  /** The same for every gateway that shares the store. Default: no limit. */
  readonly kvLimit?: KvLimit | undefined
  /** Called for every record that could not be read and was dropped. */
  readonly onCorrupted?: () => void
  /** Called for stored KV that had to make room. */
  readonly onEvicted?: (what: Evicted, count: number) => void
}

/**
 * Sessions and their removal queue in one Redis (7 or newer), shared by any number of gateways. Every method is one Lua script, so one
 * atomic step and one round trip; turns share calls, and one that meets no live session takes two. Redis Cluster is not supported: a script
 * touches keys of several slots. Redis must not evict keys
 * (`maxmemory-policy noeviction`); when it is full, creating fails, while reading, deleting and expiring go on.
 */
export const createRedisSessionStore = ({
  connection,
  tombstoneSeconds = 86_400,
  supersededGraceMs = 5000,
  kvLimit,
  onCorrupted = () => {},
  onEvicted = () => {},
}: RedisSessionStoreOptions): SessionStore & RemovalQueue => {
  const scripts = createSessionScripts({ connection, tombstoneSeconds, onCorrupted })
  return {
    ...createRedisSessions({ connection, scripts, supersededGraceMs, kvLimit, onEvicted }),
    ...createRedisRemovals({ run: scripts.run, kvLimit, onEvicted }),
  }
}
