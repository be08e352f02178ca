import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import { useTestRedisCluster } from '../../support/redis-cluster/use-test-redis-cluster.ts'
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
const cluster = useTestRedisCluster({ replicas: 0 })
let made = 0

const servers = [
  {
    where: 'Redis',
    connect: () => redis().connect(),
    keys: (pattern: string): Promise<readonly string[]> => redis().raw.keys(pattern),
    numRuns: 100,
  },
  {
    where: 'a Redis Cluster',
    connect: () => cluster().connect(),
    keys: (pattern: string) => cluster().keys(pattern),
    numRuns: 30,
  },
]

test.each(servers)(
  'chunk ledgers in memory and in $where answer alike to any calls, and keep nothing that is released',
  async (server) => {
    const connection = await server.connect()
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
      expect([memory.size, await server.keys(`${keyPrefix}*`)]).toEqual([0, []])
    })
    await fc.assert(property, { numRuns: server.numRuns })
  },
)
