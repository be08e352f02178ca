import type { RedisConnection } from '../../redis/redis-connection.ts'
import { createTokenCipher, type TokenVault } from './token-vault.ts'

/** The vault that all gateway processes share: one Redis string for each entry, which expires by Redis' own clock. `secret` is the tenant secret. */
export const createRedisTokenVault = (redis: RedisConnection, secret: string): TokenVault => {
  const cipher = createTokenCipher(secret)
  const keyOf = (artefactId: string): string => `${redis.keyPrefix}kv:tokens:${artefactId}`
  return {
    put: (artefactId, tokens, ttlMs) =>
      redis.setBytes(keyOf(artefactId), cipher.seal(artefactId, tokens), Math.max(1, Math.trunc(ttlMs))),
    get: async (artefactId) => {
      const sealed = await redis.getBytes(keyOf(artefactId))
      return sealed === undefined ? undefined : cipher.open(artefactId, sealed)
    },
    delete: (artefactId) => redis.unlink([keyOf(artefactId)]),
  }
}
