import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ChunkLedger, UnsettledSalt } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/memory-chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { describeLives } from './chunk-ledger-lives.ts'
import { ChunkLedgerModel } from './chunk-ledger-model.ts'
import { anySteps, names, type Step, salts, take, turnIds } from './chunk-ledger-steps.ts'

/** A ledger through one or several clients. */
interface Ledgers {
  readonly ledgers: readonly ChunkLedger[]
  readonly size: () => Promise<number>
}

let redis: TestRedis
let connections: readonly RedisConnection[]
let made = 0
beforeAll(async () => {
  redis = await startTestRedis()
  connections = await Promise.all([1, 2].map(() => redis.connect({ commandTimeoutMs: 10_000 })))
}, 300_000)
afterAll(() => redis.close())

const inMemory = (): Ledgers => {
  const ledger = createMemoryChunkLedger()
  return { ledgers: [ledger, ledger], size: async () => ledger.size }
}

const inRedis = (): Ledgers => {
  made += 1
  const keyPrefix = `fuzz${made}:`
  return {
    ledgers: connections.map((connection) => createRedisChunkLedger({ ...connection, keyPrefix })),
    size: async () => (await redis.raw.keys(`${keyPrefix}*`)).length,
  }
}

/** What an answer must be equal to the model's in. */
const comparable = (step: Step, answer: unknown): unknown =>
  step.kind === 'unsettled' ? (answer as readonly UnsettledSalt[]).map((entry) => entry.salt).sort() : answer

const releaseAll: readonly Step[] = salts.flatMap((salt) => [
  ...turnIds.map((turnId): Step => ({ kind: 'settle', salt, turnId, tidy: true })),
  ...names.map((name): Step => ({ kind: 'release', salt, name, times: 1 })),
  ...names.map((name): Step => ({ kind: 'deleted', salt, name })),
])
const sweepAll: readonly Step[] = [
  { kind: 'unsettled' },
  ...salts.map((salt): Step => ({ kind: 'swept', salt, answersAgo: 0 })),
]

const isAsExplained = async ({ ledgers, size }: Ledgers, steps: readonly Step[]): Promise<void> => {
  const model = new ChunkLedgerModel()
  let answers: readonly (readonly UnsettledSalt[])[] = []
  for (const step of [...steps, ...releaseAll, ...sweepAll]) {
    const answer = await take(ledgers, step, answers)
    expect(comparable(step, answer)).toEqual(model.take(step))
    if (step.kind === 'unsettled') answers = [answer as readonly UnsettledSalt[], ...answers]
  }
  expect(model.isEmpty).toBe(true)
  expect(await size()).toBe(0)
}

describe('a ledger of chunks', () => {
  test.each([
    ['memory', inMemory, 1_000],
    ['Redis', inRedis, 150],
  ])(
    'in %s answers any sequence of calls as explained, and keeps nothing in the end',
    async (_name, make, numRuns) => {
      await fc.assert(
        fc.asyncProperty(anySteps, (steps) => isAsExplained(make(), steps)),
        { numRuns },
      )
    },
    60_000,
  )
})

describeLives('memory', inMemory, 100)
describeLives('Redis', inRedis, 30)
