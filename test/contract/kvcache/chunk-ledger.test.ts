import { beforeEach, describe, expect, test } from '@jest/globals'
import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import { RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

interface LedgerBed {
  readonly ledger: ChunkLedger
  /** The same ledger as another gateway process sees it; in memory there is only one. */
  readonly elsewhere: ChunkLedger
  /** How much the ledger keeps, in units of its own. */
  size(): Promise<number>
}

const redis = useTestRedis()

const inRedis = async (server: TestRedis = redis()): Promise<LedgerBed> => {
  const [here, there] = await Promise.all([server.connect(), server.connect()])
  return {
    ledger: createRedisChunkLedger(here),
    elsewhere: createRedisChunkLedger({ ...there, keyPrefix: here.keyPrefix }),
    size: async () => (await server.raw.keys(`${here.keyPrefix}*`)).length,
  }
}
const inMemory = async (): Promise<LedgerBed> => {
  const ledger = createMemoryChunkLedger()
  return { ledger, elsewhere: ledger, size: async () => ledger.size }
}

const salt = '3f9a'

// The model-based test compares that in a Redis Cluster with that in memory.
describe.each([
  { adapter: 'memory', make: inMemory },
  { adapter: 'Redis', make: () => inRedis() },
])('a chunk ledger in $adapter', ({ make }) => {
  let bed: LedgerBed
  beforeEach(async () => {
    bed = await make()
  })
  const hold = (name: string, ...chunks: readonly string[]) => bed.ledger.hold({ salt, name, chunks })
  const release = async (name: string, ...chunks: readonly string[]) =>
    [...(await bed.elsewhere.release({ salt, name, chunks }))].sort()

  test('release returns the chunks that no other artefact holds', async () => {
    await hold('a', 'c1', 'c2', 'c3')
    await hold('b', 'c1', 'c2', 'c4')
    await hold('c', 'c1')
    expect(await release('a', 'c1', 'c2', 'c3')).toEqual(['c3'])
    expect(await release('b', 'c1', 'c2', 'c4')).toEqual(['c2', 'c4'])
    expect(await release('c', 'c1')).toEqual(['c1'])
    expect(await bed.size()).toBe(0)
  })

  test('a chunk counts once for each artefact, in however many calls it is held', async () => {
    await hold('a', 'c1', 'c1')
    await hold('a', 'c1', 'c2')
    expect(await release('a', 'c1', 'c2', 'c1')).toEqual(['c1', 'c2'])
    expect(await bed.size()).toBe(0)
  })

  test('a release can be repeated, and leaves out what somebody holds meanwhile', async () => {
    await hold('a', 'c1', 'c2')
    expect(await release('a', 'c1', 'c2')).toEqual(['c1', 'c2'])
    await hold('b', 'c2')
    expect(await release('a', 'c1', 'c2')).toEqual(['c1'])
    expect(await release('b', 'c2')).toEqual(['c2'])
  })

  test('of two artefacts that are released at once, one gets the chunks that both held', async () => {
    const chunks = Array.from({ length: 50 }, (_none, index) => `c${index}`)
    await hold('a', ...chunks)
    await hold('b', ...chunks)
    const [one, other] = await Promise.all([release('a', ...chunks), release('b', ...chunks)])
    expect([...one, ...other].sort()).toEqual(chunks.toSorted())
  })

  test('a release of chunks that nobody ever held returns them', async () => {
    await hold('b', 'c2')
    expect(await release('a', 'c1', 'c2')).toEqual(['c1'])
    expect(await bed.size()).toBe(1)
  })

  test('salts are kept apart', async () => {
    await hold('a', 'c1')
    await bed.ledger.hold({ salt: 'another', name: 'b', chunks: ['c1'] })
    expect(await release('a', 'c1')).toEqual(['c1'])
  })

  test('an artefact holds 10,000 chunks', async () => {
    const chunks = Array.from({ length: 10_000 }, (_none, index) => `c${index}`)
    await hold('a', ...chunks)
    await hold('b', ...chunks.slice(0, 7_000))
    expect(await release('a', ...chunks)).toEqual(chunks.slice(7_000).toSorted())
    expect(await bed.size()).toBe(7_000)
  })
})

describe('the chunk ledger in Redis', () => {
  test('keeps the chunks of a salt on one node of a cluster', async () => {
    const connection = await redis().connect()
    await createRedisChunkLedger(connection).hold({ salt, name: 'a', chunks: ['c1', 'c2', '*'] })
    const keys = await redis().raw.keys(`${connection.keyPrefix}*`)
    const tags = keys.map((key) => /\{([^}]+)\}/.exec(key)?.[1])
    expect(tags).toEqual([salt, salt, salt])
  })

  test('on a full Redis, refuses to hold and still releases', async () => {
    const full = await startTestRedis()
    try {
      const held = await inRedis(full)
      await held.ledger.hold({ salt, name: 'a', chunks: ['c1', 'c2'] })
      await full.raw.config('SET', 'maxmemory', '1')
      const more = held.ledger.hold({ salt, name: 'b', chunks: ['c3'] })
      await expect(more).rejects.toBeInstanceOf(RedisUnavailableError)
      expect(await held.ledger.release({ salt, name: 'a', chunks: ['c1', 'c2'] })).toEqual(['c1', 'c2'])
      expect(await held.size()).toBe(0)
    } finally {
      await full.close()
    }
  })

  test('rejects when Redis is unavailable', async () => {
    const gone = await startTestRedis()
    const ledger = createRedisChunkLedger(await gone.connect())
    await gone.close()
    const artefact = { salt, name: 'a', chunks: ['c1'] }
    await expect(ledger.hold(artefact)).rejects.toBeInstanceOf(RedisUnavailableError)
    await expect(ledger.release(artefact)).rejects.toBeInstanceOf(RedisUnavailableError)
  })
})
