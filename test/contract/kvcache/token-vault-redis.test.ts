import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createRedisTokenVault } from '../../../src/kvcache/vault/redis-token-vault.ts'
import { tokensToBytes } from '../../../src/kvcache/vault/token-bytes.ts'
import type { ContentKey } from '../../../src/kvcache/vault/token-vault.ts'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { startTestRedis, type TestRedis } from '../sessions/test-redis.ts'
import { contentKey, redisVaultBed } from './token-vault-bed.ts'
import { describeTokenVault } from './token-vault-suite.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
}, 300_000)
afterAll(() => redis.close())

describeTokenVault('Redis', () => redisVaultBed(redis))

describe('the token vault in Redis', () => {
  const key = contentKey(1)
  const minute = 60_000

  /** Everything that lies in Redis: keys, and values both as they are and as they are dumped. */
  const dumpAll = async (): Promise<Buffer> => {
    const names = await redis.raw.keys('*')
    const values = names.map(async (name) => [await redis.raw.getBuffer(name), await redis.raw.dumpBuffer(name)])
    return Buffer.concat([
      Buffer.from(names.join('\n')),
      ...(await Promise.all(values)).flat().filter((v) => v !== null),
    ])
  }

  /** Pieces of the bytes, each long enough not to turn up by chance. */
  const pieces = (bytes: Uint8Array): readonly Buffer[] =>
    Array.from({ length: Math.floor(bytes.length / 8) }, (_none, index) =>
      Buffer.from(bytes.subarray(index * 8, index * 8 + 8)),
    )

  test.each([
    ['a short text', Buffer.from('Tell me about my secret illness.')],
    ['a long text', Buffer.from('Tell me about my secret illness. '.repeat(200))],
    ['token ids', tokensToBytes(Uint32Array.from({ length: 3_000 }, () => randomInt(128_000)))],
  ])('shows nothing of %s, nor of the key it is sealed with', async (_name, content) => {
    await redis.raw.flushall()
    const secret = Buffer.from('0123456789abcdef0123456789ABCDEF')
    const vault = createRedisTokenVault(await redis.connect())
    const sessionKey = secret.toString('base64url') as ContentKey
    await vault.put({ name: 'turn-1', contentKey: sessionKey, content }, minute)
    const dump = await dumpAll()
    expect(dump.includes('turn-1')).toBe(true)
    expect(
      [...pieces(content), ...pieces(secret), ...pieces(Buffer.from(sessionKey))].filter((p) => dump.includes(p)),
    ).toEqual([])
    expect(await vault.get('turn-1', sessionKey).then((opened) => Buffer.from(opened ?? []))).toEqual(
      Buffer.from(content),
    )
  })

  test('seals the same content differently each time', async () => {
    const connection = await redis.connect()
    const vault = createRedisTokenVault(connection)
    const read = () => redis.raw.getBuffer(`${connection.keyPrefix}kv:tokens:a`)
    await vault.put({ name: 'a', contentKey: key, content: Buffer.from('same') }, minute)
    const first = await read()
    await vault.put({ name: 'a', contentKey: key, content: Buffer.from('same') }, minute)
    expect(await read()).not.toEqual(first)
  })

  test.each([
    ['of another entry', (sealed: Buffer) => ({ name: 'b', sealed })],
    ['cut off', (sealed: Buffer) => ({ name: 'a', sealed: sealed.subarray(0, -1) })],
    [
      'with one bit turned',
      (sealed: Buffer) => ({ name: 'a', sealed: Buffer.from(sealed).fill((sealed[20] ?? 0) ^ 1, 20, 21) }),
    ],
    [
      'of somebody else',
      () => ({ name: 'a', sealed: Buffer.from('{"some":"thing else, and long enough to be an entry"}') }),
    ],
    ['too short to be an entry', () => ({ name: 'a', sealed: Buffer.from([1]) })],
    ['that are none', () => ({ name: 'a', sealed: Buffer.alloc(0) })],
  ])('opens no bytes %s', async (_name, change) => {
    const connection = await redis.connect()
    const vault = createRedisTokenVault(connection)
    const keyOf = (name: string) => `${connection.keyPrefix}kv:tokens:${name}`
    await vault.put({ name: 'a', contentKey: key, content: Buffer.from('content of an entry') }, minute)
    const { name, sealed } = change((await redis.raw.getBuffer(keyOf('a'))) ?? Buffer.alloc(0))
    await redis.raw.set(keyOf(name), sealed)
    expect(await vault.get(name, key)).toBeUndefined()
  })

  test('lets Redis forget its entries', async () => {
    const connection = await redis.connect()
    await createRedisTokenVault(connection).put({ name: 'a', contentKey: key, content: Buffer.from('x') }, minute)
    const rest = await redis.raw.pttl(`${connection.keyPrefix}kv:tokens:a`)
    expect(rest).toBeGreaterThan(0)
    expect(rest).toBeLessThanOrEqual(minute)
  })

  test('says so when its key is of another kind, or Redis is away', async () => {
    const connection = await redis.connect()
    const vault = createRedisTokenVault(connection)
    await redis.raw.hset(`${connection.keyPrefix}kv:tokens:a`, 'field', 'value')
    await expect(vault.get('a', key)).rejects.toBeInstanceOf(RedisScriptError)

    const gone = await startTestRedis()
    const away = createRedisTokenVault(await gone.connect())
    await gone.close()
    await expect(away.put({ name: 'a', contentKey: key, content: Buffer.from('x') }, minute)).rejects.toBeInstanceOf(
      RedisUnavailableError,
    )
    await expect(away.get('a', key)).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(away.delete(['a'])).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(away.delete([])).resolves.toBeUndefined()
  })
})
