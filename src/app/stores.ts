import type { Config } from '../config/config.ts'
import type { ChunkLedger } from '../kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../kvcache/chunks/memory-chunk-ledger.ts'
import { createRedisChunkLedger } from '../kvcache/chunks/redis/redis-chunk-ledger.ts'
import { createMemorySlotLedger } from '../kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../kvcache/slots/redis/redis-slot-ledger.ts'
import type { SlotLedger } from '../kvcache/slots/slot-ledger.ts'
import { createMemoryTokenVault } from '../kvcache/vault/memory-token-vault.ts'
import { createRedisTokenVault } from '../kvcache/vault/redis-token-vault.ts'
import type { TokenVault } from '../kvcache/vault/token-vault.ts'
import { createRedisConnection } from '../redis/create-redis-connection.ts'
import { type CostModelStore, createMemoryCostModelStore } from '../routing/cost-model-store.ts'
import { createRedisCostModelStore } from '../routing/redis/redis-cost-model-store.ts'
import type { Evicted, KvLimit } from '../sessions/eviction.ts'
import { createMemorySessionStore } from '../sessions/memory/create-memory-session-store.ts'
import { createProcessMemoryWatch } from '../sessions/memory/process-memory.ts'
import { createRedisSessionStore } from '../sessions/redis/create-redis-session-store.ts'
import type { RemovalQueue } from '../sessions/removal-queue.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Logger } from '../telemetry/logger.ts'
import { measureOperations } from '../telemetry/measure-operations.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** A load that has just looked its artefact up opens it within this time; one that comes later finds the newer one, or computes. */
const supersededGraceMs = 1000

/** About four bytes a token of every session that is kept. */
const memoryVaultBytes = 268_435_456

/** Everything that outlives a request: in this process, or in Redis for several gateways. */
export const createStores = async (
  config: Config,
  parts: { readonly log: Logger; readonly metrics: Metrics },
): Promise<Stores> => {
  const { store, ...others } = await openStores(config, parts)
  return { store: measureOperations(store, parts.metrics.storeOperationEnded), ...others }
}

export interface Stores {
  readonly store: SessionStore & RemovalQueue
  readonly ledger: SlotLedger
  readonly chunks: ChunkLedger
  readonly vault: TokenVault
  readonly costs: CostModelStore
}

const openStores = async (
  config: Config,
  parts: { readonly log: Logger; readonly metrics: Metrics },
): Promise<Stores> => {
  const { log, metrics } = parts
  const { sessions } = config
  const onEvicted = tellEvictions(parts)
  switch (sessions.store) {
    case 'memory':
      return {
        store: createMemorySessionStore({
          maxSessions: sessions.maxSessions,
          tombstoneSeconds: sessions.tombstoneSeconds,
          supersededGraceMs,
          kvLimit: kvLimitOf(config),
          memory: { watch: createProcessMemoryWatch(), threshold: sessions.memoryThreshold },
          onEvicted,
        }),
        ledger: createMemorySlotLedger(),
        chunks: createMemoryChunkLedger(),
        vault: createMemoryTokenVault({ maxBytes: memoryVaultBytes }),
        costs: createMemoryCostModelStore(),
      }
    case 'redis': {
      const connection = await createRedisConnection({
        url: sessions.redisUrl,
        keyPrefix: sessions.keyPrefix,
        commandTimeoutMs: sessions.commandTimeoutMs,
        onFault: (error) => log.warn('Redis connection failed', { err: error }),
        onBreaker: (state) => {
          metrics.setStoreCircuit(state === 'open' ? 'open' : 'closed')
          log.warn('Redis circuit breaker', { state })
        },
      })
      return {
        store: createRedisSessionStore({
          connection,
          tombstoneSeconds: sessions.tombstoneSeconds,
          supersededGraceMs,
          kvLimit: kvLimitOf(config),
          onCorrupted: metrics.recordCorrupted,
          onEvicted,
        }),
        ledger: createRedisSlotLedger(connection),
        chunks: createRedisChunkLedger(connection),
        vault: createRedisTokenVault(connection),
        costs: createRedisCostModelStore(connection),
      }
    }
  }
}

const kvLimitOf = ({ kv }: Config): KvLimit | undefined =>
  kv.maxStoreBytes === undefined ? undefined : { maxBytes: kv.maxStoreBytes, threshold: kv.storeThreshold }

const tellEvictions =
  ({ log, metrics }: { readonly log: Logger; readonly metrics: Metrics }) =>
  (what: Evicted, count: number): void => {
    switch (what) {
      case 'session-count':
        metrics.sessionsDeleted({ reason: 'count', count })
        return
      case 'session-memory':
        metrics.sessionsDeleted({ reason: 'memory', count })
        return
      case 'kv-size':
        metrics.kvEvicted({ reason: 'size', count })
        log.info('stored KV made room', { artefacts: count })
        return
    }
  }
