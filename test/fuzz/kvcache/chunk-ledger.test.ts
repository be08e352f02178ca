import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

const allChunks = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6']
const names = ['a', 'b', 'c', 'd']
const salts = ['s1', 's2']

const anyStep = fc.record({
  kind: fc.constantFrom('hold', 'hold', 'release'),
  salt: fc.constantFrom(...salts),
  name: fc.constantFrom(...names),
  chunks: fc.array(fc.constantFrom(...allChunks), { maxLength: 5 }),
})

const redis = useTestRedis()
let connection: RedisConnection
let made = 0
beforeAll(async () => {
  connection = await redis().connect()
})

test('chunk ledgers in memory and in Redis answer alike to any calls, and keep nothing that is released', async () => {
  const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), async (steps) => {
    made += 1
    const keyPrefix = `fuzz${made}:`
    const memory = createMemoryChunkLedger()
    const ledgers = [memory, createRedisChunkLedger({ ...connection, keyPrefix })] as const
    const take = async (ledger: ChunkLedger, { kind, ...artefact }: (typeof steps)[number]) =>
      kind === 'hold' ? ledger.hold(artefact) : [...(await ledger.release(artefact))].sort()

    for (const step of steps) expect(await take(ledgers[1], step)).toEqual(await take(ledgers[0], step))

    for (const ledger of ledgers) {
      for (const salt of salts) for (const name of names) await ledger.release({ salt, name, chunks: allChunks })
    }
    expect([memory.size, await redis().raw.keys(`${keyPrefix}*`)]).toEqual([0, []])
  })
  await fc.assert(property, { numRuns: 100 })
})
