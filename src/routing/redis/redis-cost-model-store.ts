import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { CostModelStore } from '../cost-model-store.ts'

/** Costs that were not saved for this long describe engines that are gone. */
const retentionMs = 30 * 24 * 60 * 60 * 1000

/** Costs that all gateway processes share: one Redis string for each kind of engine. */
export const createRedisCostModelStore = (redis: RedisConnection): CostModelStore => {
  const keyOf = (engine: string): string => `${redis.keyPrefix}routing:costs:${engine}`
  return {
    load: (engine) => redis.get(keyOf(engine)),
    save: (engine, text) => redis.set(keyOf(engine), text, retentionMs),
  }
}
