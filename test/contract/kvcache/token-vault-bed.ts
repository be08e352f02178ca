import { createMemoryTokenVault } from '../../../src/kvcache/vault/memory-token-vault.ts'
import { createRedisTokenVault } from '../../../src/kvcache/vault/redis-token-vault.ts'
import type { ContentKey, TokenVault } from '../../../src/kvcache/vault/token-vault.ts'
import { eventually } from '../../support/eventually.ts'
import { redisNowMs } from '../sessions/age-redis-store.ts'
import type { TestRedis } from '../sessions/test-redis.ts'

/** A vault of its own for one test, and two ways into it. */
export interface TokenVaultBed {
  readonly vault: TokenVault
  /** The same vault as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: TokenVault
  /** How many entries the vault keeps. */
  size(): Promise<number>
  /** Lets more than that much time pass by the vault's clock. */
  lapse(milliseconds: number): Promise<void>
}

export const memoryVaultBed = async (): Promise<TokenVaultBed> => {
  let nowMs = 0
  const vault = createMemoryTokenVault({ maxBytes: 16 * 1024 * 1024, now: () => nowMs })
  return {
    vault,
    elsewhere: vault,
    size: async () => vault.size,
    lapse: async (milliseconds) => {
      nowMs += milliseconds + 1
    },
  }
}

export const redisVaultBed = async (redis: TestRedis): Promise<TokenVaultBed> => {
  const patient = { commandTimeoutMs: 10_000 }
  const [here, there] = await Promise.all([redis.connect(patient), redis.connect(patient)])
  return {
    vault: createRedisTokenVault(here),
    elsewhere: createRedisTokenVault({ ...there, keyPrefix: here.keyPrefix }),
    size: async () => (await redis.raw.keys(`${here.keyPrefix}*`)).length,
    lapse: async (milliseconds) => {
      const endsAtMs = (await redisNowMs(redis.raw)) + milliseconds
      await eventually(async () => (await redisNowMs(redis.raw)) > endsAtMs)
    },
  }
}

/** A content key, told apart by its number. */
export const contentKey = (number: number): ContentKey => Buffer.alloc(32, number).toString('base64url') as ContentKey
