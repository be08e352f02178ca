import type { Config } from '../config/config.ts'
import type { LiveConfig } from '../config/live-config.ts'
import { defaultPoolName } from '../config/pools.ts'
import { redisLocationOf } from '../config/redis-choice.ts'
import type { StoreIdentity } from '../kvcache/connector-definition.ts'
import { createRedisConnection } from '../redis/create-redis-connection.ts'
import type { RedisConnection } from '../redis/redis-connection.ts'
import type { HistoryStore } from '../responses/history-store.ts'
import { createMemoryHistoryStore } from '../responses/memory/create-memory-history-store.ts'
import { createRedisHistoryStore } from '../responses/redis/create-redis-history-store.ts'
import type { Evicted, KvLimit } from '../sessions/limits.ts'
import { createMemorySessionStore } from '../sessions/memory/create-memory-session-store.ts'
import { watchProcessMemory } from '../sessions/memory/process-memory.ts'
import { createRedisSessionStore } from '../sessions/redis/create-redis-session-store.ts'
import { StoreLayoutError } from '../sessions/redis/partitions.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Logger } from '../telemetry/logger.ts'
import { measureOperations } from '../telemetry/measure-operations.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Warnings } from '../telemetry/warnings.ts'

/** Of a new store. Each node has its share, and the keys of a partition stay small enough to be moved. */
const partitionsOfCluster = 64

/** How long a superseded artefact is kept for loads that have looked it up and not opened it yet. */
const supersededGraceMs = 1000

/** Sessions in memory end with their process: its KV is of no use to anybody. Longer than three renewals. */
const memoryStaleMs = 7_000
/** Longer than all gateways of a deployment are down for a restart or an update. */
const redisStaleMs = 600_000
/** Until then a gateway that starts may give a store that has lost its data another name, which all take over. */
const askAgainMs = 1_000

const storeSubject = 'sessions'

interface StoreParts {
  readonly log: Logger
  readonly metrics: Metrics
  readonly warnings: Pick<Warnings, 'raiseOutage' | 'clear'>
}

/** Opens everything that outlives a request: in this process, or in Redis for several gateways. */
export const createStores = async (live: LiveConfig, parts: StoreParts) => {
  const { store, ...others } = await openStores(live, parts)
  const { log, metrics, warnings } = parts
  const measured = measureOperations(store, ({ op, durationMs, failed }) => {
    metrics.observe('store_duration_seconds', { op }, durationMs)
    metrics.add('store_errors_total', { op }, failed ? 1 : 0)
  })
  return {
    store: measured,
    /** Tells the operator what the store failed at. */
    onFault: (operation: string, error: unknown): void => {
      // Memory only refuses what it has no room for.
      if (live.current.sessions.store === 'memory') log.warn('the session store refused', { operation, err: error })
      else warnings.raiseOutage('store_unavailable', storeSubject, error instanceof Error ? error.cause : error)
    },
    ...others,
  }
}

/** What a pool keeps beside sessions; no other pool sees it. */
export interface PoolStores {
  readonly identity: StoreIdentity
  /** With a prefix of keys for the pool; undefined: sessions are in memory. */
  readonly redis: RedisConnection | undefined
}

/** `forPool` is called once for each pool. */
const openStores = async (live: LiveConfig, parts: StoreParts) => {
  const config = live.current
  const { log, metrics, warnings } = parts
  const { sessions } = config
  const common = {
    tombstoneSeconds: sessions.tombstoneSeconds,
    supersededGraceMs,
    kvLimit: kvLimitOf(config),
    tenantLimits: () => live.current.tenant.limits,
    onEvicted: tellEvictions(parts),
  }
  switch (sessions.store) {
    case 'memory': {
      if (sessions.ignoresRedis) log.warn('sessions are in memory, by sessions.store: Redis is not used')
      const store = createMemorySessionStore({
        ...common,
        maxSessions: sessions.maxSessions,
        memory: { watch: watchProcessMemory, threshold: sessions.memoryThreshold },
      })
      return {
        store,
        openHistory: (): HistoryStore => createMemoryHistoryStore({ maxBytes: config.responses.maxMemoryBytes }),
        forPool: (name: string): PoolStores => ({ identity: identityOf(store, name, memoryStaleMs), redis: undefined }),
      }
    }
    case 'redis': {
      const location = redisLocationOf(sessions)
      const connection = await createRedisConnection({
        ...location,
        keyPrefix: sessions.keyPrefix,
        commandTimeoutMs: sessions.commandTimeoutMs,
        onFault: (error) => warnings.raiseOutage('store_unavailable', storeSubject, error),
        onMessagesRefused: (err) =>
          log.warn('Redis does not let this gateway receive messages: slots that others release are found later', {
            err,
          }),
        onRecovered: () => warnings.clear('store_unavailable', storeSubject),
        onBreaker: (state, server) => {
          metrics.set('store_circuit_open', {}, state === 'closed' ? 0 : 1)
          if (state === 'open')
            warnings.raiseOutage('store_unavailable', storeSubject, `Redis at ${server} does not answer in time`)
          if (state === 'closed') warnings.clear('store_unavailable', storeSubject)
        },
      })
      const store = createRedisSessionStore({
        ...common,
        connection,
        partitions: sessions.partitions,
        partitionsOfNewStore: location.topology?.kind === 'cluster' ? partitionsOfCluster : 1,
        onCorrupted: () => metrics.add('corrupted_records_total', {}),
      })
      await store.identity().catch((error: unknown) => {
        // Turns go on without a Redis that is away; one with the sessions of another layout has to be put right.
        if (error instanceof StoreLayoutError) throw error
      })
      return {
        store,
        openHistory: (): HistoryStore => createRedisHistoryStore(connection),
        forPool: (name: string): PoolStores => {
          const prefix = name === defaultPoolName ? '' : `pool:${name}:`
          const redis = { ...connection, keyPrefix: `${connection.keyPrefix}${prefix}` }
          return { identity: identityOf(store, name, redisStaleMs), redis }
        },
      }
    }
  }
}

/** The data of one pool. A name that is known holds while the store does not answer. */
export const identityOf = (store: SessionStore, pool: string, staleAfterMs: number): StoreIdentity => {
  let known: string | undefined
  let askedMs = 0
  return {
    staleAfterMs,
    name: async () => {
      if (known !== undefined && performance.now() - askedMs < askAgainMs) return known
      askedMs = performance.now()
      try {
        known = `${await store.identity()} ${pool}`
      } catch (error) {
        if (known === undefined) throw error
      }
      return known
    },
  }
}

const kvLimitOf = ({ kv }: Config): KvLimit | undefined =>
  kv.maxStoreBytes === undefined ? undefined : { maxBytes: kv.maxStoreBytes, threshold: kv.storeThreshold }

const tellEvictions =
  ({ log, metrics }: StoreParts) =>
  (what: Evicted, count: number): void => {
    switch (what) {
      case 'session-count':
        metrics.add('sessions_deleted_total', { reason: 'count' }, count)
        return
      case 'session-memory':
        metrics.add('sessions_deleted_total', { reason: 'memory' }, count)
        return
      case 'kv-size':
        metrics.add('kv_evictions_total', { reason: 'size' }, count)
        log.info('stored KV evicted', { artefacts: count })
        return
    }
  }
