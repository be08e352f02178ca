import type { RedisConnection } from '../../../redis/redis-connection.ts'
import type { CostProfileStore } from '../cost-profile-store.ts'

/** What nobody has used for so long describes engines that are gone. */
const keptForMs = 30 * 24 * 60 * 60 * 1000

/** The costs that all gateway processes share: one Redis string for each kind of engine. */
export const createRedisCostProfileStore = (redis: RedisConnection): CostProfileStore => {
  const keyOf = (engine: string): string => `${redis.keyPrefix}routing:costs:${engine}`
  return {
    load: async (engine) => {
      const text = await redis.getBytes(keyOf(engine))
      return text === undefined ? undefined : Buffer.from(text).toString('utf8')
    },
    save: async (engine, text) => redis.setBytes(keyOf(engine), Buffer.from(text, 'utf8'), keptForMs),
  }
}
