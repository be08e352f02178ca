import { randomBytes, randomInt } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createMemoryTokenVault } from '../../../src/kvcache/vault/memory-token-vault.ts'
import { createRedisTokenVault } from '../../../src/kvcache/vault/redis-token-vault.ts'
import { tokensToBytes } from '../../../src/kvcache/vault/token-bytes.ts'
import type { ContentKey, TokenVault } from '../../../src/kvcache/vault/token-vault.ts'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { redisNowMs } from '../sessions/age-redis-store.ts'
import { contentKey, describeTokenVault } from './token-vault-suite.ts'

const key = contentKey(1)
const minute = 60_000

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
}, 300_000)
afterAll(() => redis.close())

describeTokenVault('memory', async () => {
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
})

describeTokenVault('Redis', async () => {
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
})

describe('the limit of a token vault in memory', () => {
  let nowMs: number
  let vault: ReturnType<typeof createMemoryTokenVault>
  beforeEach(() => {
    nowMs = 0
    vault = createMemoryTokenVault({ maxBytes: 1_000, now: () => nowMs })
  })
  const put = (name: string, bytes: number, ttlMs = minute) =>
    vault.put({ name, contentKey: key, content: randomBytes(bytes) }, ttlMs)
  const kept = async (...names: readonly string[]) => {
    const found = await Promise.all(names.map((name) => vault.get(name, key)))
    return names.filter((_name, index) => found[index] !== undefined)
  }

  test('evicts the least recently used entry', async () => {
    for (const name of ['a', 'b', 'c']) await put(name, 270)
    await vault.get('a', key)
    await put('d', 270)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('evicts an expired entry before any other', async () => {
    await put('a', 270)
    await put('b', 270, 100)
    await put('c', 270)
    nowMs = 200
    await put('d', 270)
    expect(await kept('a', 'b', 'c', 'd')).toEqual(['a', 'c', 'd'])
  })

  test('refuses an entry that exceeds it, and evicts none for it but one of its name', async () => {
    await put('a', 270)
    await put('b', 1_001)
    expect(await kept('a', 'b')).toEqual(['a'])
    await put('a', 1_001)
    expect(vault.size).toBe(0)
  })

  test('counts names, nonces and tags', async () => {
    for (const name of ['a', 'b']) await put(name.repeat(450), 40)
    expect(vault.size).toBe(1)
  })
})

describe('the token vault in Redis', () => {
  let vault: TokenVault
  let keyOf: (name: string) => string
  beforeEach(async () => {
    const connection = await redis.connect()
    vault = createRedisTokenVault(connection)
    keyOf = (name) => `${connection.keyPrefix}kv:tokens:${name}`
  })
  const put = (content: string | Buffer, contentKeyOfEntry = key) =>
    vault.put({ name: 'a', contentKey: contentKeyOfEntry, content: Buffer.from(content) }, minute)

  /** All keys, and their values both as they are and as they are dumped. */
  const dumpAll = async (): Promise<Buffer> => {
    const names = await redis.raw.keys('*')
    const values = names.map(async (name) => [await redis.raw.getBuffer(name), await redis.raw.dumpBuffer(name)])
    const known = (await Promise.all(values)).flat().filter((value) => value !== null)
    return Buffer.concat([Buffer.from(names.join('\n')), ...known])
  }

  /** Pieces of the bytes, each too long to appear by chance. */
  const pieces = (bytes: Uint8Array): readonly Buffer[] =>
    Array.from({ length: Math.floor(bytes.length / 8) }, (_none, index) =>
      Buffer.from(bytes.subarray(index * 8, index * 8 + 8)),
    )

  test.each([
    { name: 'a short text', content: Buffer.from('Tell me about my secret illness.') },
    { name: 'a long text', content: Buffer.from('Tell me about my secret illness. '.repeat(200)) },
    {
      name: 'token ids',
      content: Buffer.from(tokensToBytes(Uint32Array.from({ length: 3_000 }, () => randomInt(128_000)))),
    },
  ])('a dump shows nothing of $name, nor of its key', async ({ content }) => {
    await redis.raw.flushall()
    const secret = Buffer.from('0123456789abcdef0123456789ABCDEF')
    const secretKey = secret.toString('base64url') as ContentKey
    await put(content, secretKey)
    const dump = await dumpAll()
    expect(dump.includes(keyOf('a'))).toBe(true)
    const secrets = [...pieces(content), ...pieces(secret), ...pieces(Buffer.from(secretKey))]
    expect(secrets.filter((piece) => dump.includes(piece))).toEqual([])
    expect(await vault.get('a', secretKey).then((opened) => Buffer.from(opened ?? []))).toEqual(content)
  })

  test('the same content is sealed differently each time', async () => {
    await put('same')
    const first = await redis.raw.getBuffer(keyOf('a'))
    await put('same')
    expect(await redis.raw.getBuffer(keyOf('a'))).not.toEqual(first)
  })

  test.each([
    { name: 'of another entry', entry: 'b', change: (sealed: Buffer) => sealed },
    { name: 'that are cut off', entry: 'a', change: (sealed: Buffer) => sealed.subarray(0, -1) },
    { name: 'of another program', entry: 'a', change: () => Buffer.from('{"some":"thing else"}') },
  ])('bytes $name are a miss', async ({ entry, change }) => {
    await put('content of an entry')
    const sealed = change((await redis.raw.getBuffer(keyOf('a'))) ?? Buffer.alloc(0))
    await redis.raw.set(keyOf(entry), sealed)
    expect(await vault.get(entry, key)).toBeUndefined()
  })

  test('Redis expires an entry after its time', async () => {
    await put('x')
    const rest = await redis.raw.pttl(keyOf('a'))
    expect(rest).toBeGreaterThan(0)
    expect(rest).toBeLessThanOrEqual(minute)
  })

  test('rejects when its key has another type, or Redis is unavailable', async () => {
    await redis.raw.hset(keyOf('a'), 'field', 'value')
    await expect(vault.get('a', key)).rejects.toBeInstanceOf(RedisScriptError)

    const gone = await startTestRedis()
    vault = createRedisTokenVault(await gone.connect())
    await gone.close()
    await expect(put('x')).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(vault.get('a', key)).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(vault.delete(['a'])).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(vault.delete([])).resolves.toBeUndefined()
  })
})
