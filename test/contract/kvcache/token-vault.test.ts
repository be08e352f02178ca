import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createMemoryTokenVault } from '../../../src/kvcache/vault/memory-token-vault.ts'
import { createRedisTokenVault } from '../../../src/kvcache/vault/redis-token-vault.ts'
import type { TokenVault } from '../../../src/kvcache/vault/token-vault.ts'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { redisNowMs } from '../sessions/age-redis-store.ts'

/** A vault for one test, and two ways into it. */
interface VaultBed {
  readonly vault: TokenVault
  /** The same vault as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: TokenVault
  /** How many entries the vault keeps. */
  size(): Promise<number>
  /** Waits for more than that much time by the vault's clock. */
  lapse(milliseconds: number): Promise<void>
}

const secret = 'a secret of the tests'
const minute = 60_000

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
}, 300_000)
afterAll(() => redis.close())

const inMemory = async (): Promise<VaultBed> => {
  let nowMs = 0
  const vault = createMemoryTokenVault({ secret, maxBytes: 16 * 1024 * 1024, now: () => nowMs })
  return {
    vault,
    elsewhere: vault,
    size: async () => vault.size,
    lapse: async (milliseconds) => {
      nowMs += milliseconds + 1
    },
  }
}

const inRedis = async (): Promise<VaultBed> => {
  const patient = { commandTimeoutMs: 10_000 }
  const [here, there] = await Promise.all([redis.connect(patient), redis.connect(patient)])
  return {
    vault: createRedisTokenVault(here, secret),
    elsewhere: createRedisTokenVault({ ...there, keyPrefix: here.keyPrefix }, secret),
    size: async () => (await redis.raw.keys(`${here.keyPrefix}*`)).length,
    lapse: async (milliseconds) => {
      const endsAtMs = (await redisNowMs(redis.raw)) + milliseconds
      await eventually(async () => (await redisNowMs(redis.raw)) > endsAtMs)
    },
  }
}

describe.each([
  { adapter: 'memory', make: inMemory },
  { adapter: 'Redis', make: inRedis },
])('a token vault in $adapter', ({ make }) => {
  let bed: VaultBed
  beforeEach(async () => {
    bed = await make()
  })

  test.each([
    { name: 'no tokens', tokens: new Uint32Array() },
    { name: 'any token ids', tokens: Uint32Array.of(0, 1, 0x01020304, 0xffffffff) },
    { name: 'part of a larger array', tokens: Uint32Array.of(7, 8, 9, 10).subarray(1, 3) },
    { name: '100,000 token ids', tokens: Uint32Array.from({ length: 100_000 }, (_none, index) => index * 7919) },
  ])('another process reads $name unchanged', async ({ tokens }) => {
    await bed.vault.put('a', tokens, minute)
    expect(await bed.elsewhere.get('a')).toEqual(tokens)
  })

  test('tokens are read only by their artefact', async () => {
    await bed.vault.put('a', Uint32Array.of(1), minute)
    await bed.vault.put('b', Uint32Array.of(2), minute)
    expect([await bed.vault.get('a'), await bed.vault.get('b')]).toEqual([Uint32Array.of(1), Uint32Array.of(2)])
    expect(await bed.vault.get('c')).toBeUndefined()
  })

  test('put replaces the tokens of an artefact and their time', async () => {
    await bed.vault.put('a', Uint32Array.of(1), 50)
    await bed.vault.put('a', Uint32Array.of(2), minute)
    await bed.lapse(50)
    expect(await bed.vault.get('a')).toEqual(Uint32Array.of(2))
  })

  test.each([50, 0, 0.3, -5])('tokens kept for %d ms are gone after their time, and others stay', async (ttlMs) => {
    await bed.vault.put('a', Uint32Array.of(1), ttlMs)
    await bed.vault.put('b', Uint32Array.of(2), minute)
    await bed.lapse(Math.max(ttlMs, 1))
    expect(await bed.vault.get('a')).toBeUndefined()
    expect(await bed.vault.get('b')).toEqual(Uint32Array.of(2))
    expect(await bed.size()).toBe(1)
  })

  test('delete can be repeated', async () => {
    for (const name of ['a', 'b']) await bed.vault.put(name, Uint32Array.of(1), minute)
    await bed.elsewhere.delete('a')
    await bed.vault.delete('a')
    expect(await bed.vault.get('a')).toBeUndefined()
    expect(await bed.size()).toBe(1)
  })
})

describe('the limit of a token vault in memory', () => {
  let nowMs: number
  let vault: ReturnType<typeof createMemoryTokenVault>
  beforeEach(() => {
    nowMs = 0
    vault = createMemoryTokenVault({ secret, maxBytes: 1_000, now: () => nowMs })
  })
  const put = (name: string, tokens: number, ttlMs = minute) => vault.put(name, new Uint32Array(tokens), ttlMs)
  const kept = async (...names: readonly string[]) => {
    const found = await Promise.all(names.map((name) => vault.get(name)))
    return names.filter((_name, index) => found[index] !== undefined)
  }

  test('evicts the least recently used entry', async () => {
    for (const name of ['a', 'b', 'c']) await put(name, 68)
    await vault.get('a')
    await put('d', 68)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('evicts an expired entry before any other', async () => {
    await put('a', 68)
    await put('b', 68, 100)
    await put('c', 68)
    nowMs = 200
    await put('d', 68)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('refuses an entry that exceeds it, and evicts none for it but one of its name', async () => {
    await put('a', 68)
    await put('b', 251)
    expect(await kept('a', 'b')).toEqual(['a'])
    await put('a', 251)
    expect(vault.size).toBe(0)
  })
})

describe('the token vault in Redis', () => {
  let vault: TokenVault
  let keyOf: (name: string) => string
  beforeEach(async () => {
    const connection = await redis.connect()
    vault = createRedisTokenVault(connection, secret)
    keyOf = (name) => `${connection.keyPrefix}kv:tokens:${name}`
  })

  /** All keys, and their values both as they are and as they are dumped. */
  const dumpAll = async (): Promise<Buffer> => {
    const names = await redis.raw.keys('*')
    const values = names.map(async (name) => [await redis.raw.getBuffer(name), await redis.raw.dumpBuffer(name)])
    const known = (await Promise.all(values)).flat().filter((value) => value !== null)
    return Buffer.concat([Buffer.from(names.join('\n')), ...known])
  }

  test('a dump shows nothing of the tokens, nor of the secret', async () => {
    await redis.raw.flushall()
    const tokens = Uint32Array.from({ length: 3_000 }, () => randomInt(128_000))
    await vault.put('a', tokens, minute)
    const dump = await dumpAll()
    expect(dump.includes(keyOf('a'))).toBe(true)
    const bytes = Buffer.from(tokens.buffer)
    // Each piece is too long to appear by chance.
    const pieces = Array.from({ length: bytes.length / 8 }, (_none, index) => bytes.subarray(index * 8, index * 8 + 8))
    expect([...pieces, Buffer.from(secret)].filter((piece) => dump.includes(piece))).toEqual([])
    expect(await vault.get('a')).toEqual(tokens)
  })

  test.each([
    { name: 'of another entry', entry: 'b', change: (sealed: Buffer) => sealed },
    { name: 'that are cut off', entry: 'a', change: (sealed: Buffer) => sealed.subarray(0, -1) },
    { name: 'of another program', entry: 'a', change: () => Buffer.from('{"some":"thing else"}') },
  ])('bytes $name are a miss', async ({ entry, change }) => {
    await vault.put('a', Uint32Array.of(1, 2, 3), minute)
    const sealed = change((await redis.raw.getBuffer(keyOf('a'))) ?? Buffer.alloc(0))
    await redis.raw.set(keyOf(entry), sealed)
    expect(await vault.get(entry)).toBeUndefined()
  })

  test('Redis expires an entry after its time', async () => {
    await vault.put('a', Uint32Array.of(1), minute)
    const rest = await redis.raw.pttl(keyOf('a'))
    expect(rest).toBeGreaterThan(0)
    expect(rest).toBeLessThanOrEqual(minute)
  })

  test('rejects when its key has another type, or Redis is unavailable', async () => {
    await redis.raw.hset(keyOf('a'), 'field', 'value')
    await expect(vault.get('a')).rejects.toBeInstanceOf(RedisScriptError)

    const gone = await startTestRedis()
    vault = createRedisTokenVault(await gone.connect(), secret)
    await gone.close()
    await expect(vault.put('a', Uint32Array.of(1), minute)).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(vault.get('a')).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(vault.delete('a')).rejects.toBeInstanceOf(RedisUnavailableError)
  })
})
