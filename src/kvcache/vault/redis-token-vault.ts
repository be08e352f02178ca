import type { RedisConnection } from '../../redis/redis-connection.ts'
import type { TokenVault } from './token-vault.ts'
import { openEntry, sealEntry } from './vault-cipher.ts'
import { toTtlMs } from './vault-ttl.ts'

/** The vault that all gateway processes share: one Redis string for each entry, which expires by Redis' own clock. */
export const createRedisTokenVault = (redis: RedisConnection): TokenVault => {
  const keyOf = (name: string): string => `${redis.keyPrefix}kv:tokens:${name}`
  return {
    put: async (entry, ttlMs) => {
      await redis.setBytes(keyOf(entry.name), await sealEntry(entry), toTtlMs(ttlMs))
    },
    get: async (name, contentKey) => {
      const sealed = await redis.getBytes(keyOf(name))
      return sealed === undefined ? undefined : await openEntry(sealed, { name, contentKey })
    },
    delete: async (names) => {
      await redis.unlink(names.map(keyOf))
    },
  }
}
