import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { ChunkLedger, UnsettledSalt } from '../../../src/kvcache/chunks/chunk-ledger.ts'
import { createMemoryChunkLedger } from '../../../src/kvcache/chunks/memory-chunk-ledger.ts'
import { createRedisChunkLedger } from '../../../src/kvcache/chunks/redis/redis-chunk-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { describeLives } from './chunk-ledger-lives.ts'

const salts = ['s1', 's2']
const names = ['a', 'b', 'c', 'd']
const turnIds = ['t1', 't2']
const weights = {
  open: 2,
  settle: 2,
  hold: 6,
  release: 4,
  deleted: 3,
  claimUnheld: 2,
  unsettled: 2,
  swept: 2,
} as const
type Kind = keyof typeof weights

const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind as Kind))

/** One call to a ledger; which fields matter depends on the kind. */
const anyStep = fc.record({
  kind: fc.constantFrom(...kinds),
  salt: fc.constantFrom(...salts),
  name: fc.constantFrom(...names),
  turnId: fc.constantFrom(...turnIds),
  chunks: fc.array(fc.constantFrom('c1', 'c2', 'c3', 'c4', 'c5', 'c6'), { maxLength: 5 }),
  // Has run out by the next call, or never does.
  leaseMs: fc.constantFrom(0, 3_600_000),
  tidy: fc.boolean(),
  /** Releases at once. */
  times: fc.constantFrom(1, 2, 3),
  /** Which answer of `unsettled` a sweep refers to, counted from the latest. */
  answersAgo: fc.nat(2),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** A ledger through two clients. */
class Clients {
  readonly #ledgers: readonly [ChunkLedger, ChunkLedger]
  readonly #unsettled: (readonly UnsettledSalt[])[] = []

  constructor(ledgers: readonly [ChunkLedger, ChunkLedger]) {
    this.#ledgers = ledgers
  }

  /** Makes the call. The answer has a form that is equal for ledgers that behave alike. */
  async take(step: Step): Promise<unknown> {
    const [ledger, other] = this.#ledgers
    switch (step.kind) {
      case 'open':
        return ledger.open(step)
      case 'settle':
        return ledger.settle(step)
      case 'hold':
        return ledger.hold(step)
      case 'release': {
        const clients = [ledger, other, ledger].slice(0, step.times)
        const released = await Promise.all(clients.map((client) => client.release(step)))
        return released.map(({ unheld, lastOfSalt }) => ({ unheld: [...unheld].sort(), lastOfSalt }))
      }
      case 'deleted':
        return ledger.deleted(step)
      case 'claimUnheld':
        return [...(await ledger.claimUnheld(step))].sort()
      case 'unsettled': {
        // Marks and ages are the ledger's own.
        const answer = await ledger.unsettled(100)
        this.#unsettled.unshift(answer)
        return answer.map(({ salt }) => salt).sort()
      }
      case 'swept': {
        const entry = this.#unsettled[step.answersAgo]?.find(({ salt }) => salt === step.salt)
        return ledger.swept(entry ?? { salt: step.salt, mark: 'none', ageMs: 0 })
      }
    }
  }

  /** Ends all turns and artefacts, and sweeps every salt. */
  async finish(): Promise<void> {
    const [ledger] = this.#ledgers
    for (const salt of salts) {
      for (const turnId of turnIds) await ledger.settle({ salt, turnId, tidy: true })
      for (const name of names) await ledger.release({ salt, name })
      for (const name of names) await ledger.deleted({ salt, name })
    }
    for (const entry of await ledger.unsettled(100)) await ledger.swept(entry)
  }
}

let redis: TestRedis
let connections: readonly [RedisConnection, RedisConnection]
let made = 0
beforeAll(async () => {
  redis = await startTestRedis()
  const connect = () => redis.connect({ commandTimeoutMs: 10_000 })
  connections = await Promise.all([connect(), connect()])
}, 300_000)
afterAll(() => redis.close())

const inMemory = () => {
  const ledger = createMemoryChunkLedger()
  return { ledgers: [ledger, ledger] as const, size: async () => ledger.size }
}

const inRedis = () => {
  made += 1
  const keyPrefix = `fuzz${made}:`
  const [one, other] = connections
  return {
    ledgers: [createRedisChunkLedger({ ...one, keyPrefix }), createRedisChunkLedger({ ...other, keyPrefix })] as const,
    size: async () => (await redis.raw.keys(`${keyPrefix}*`)).length,
  }
}

describe('chunk ledgers under any sequence of calls', () => {
  test('memory and Redis answer alike, and keep nothing after everything has ended', async () => {
    const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 60 }), async (steps) => {
      const [memory, remote] = [inMemory(), inRedis()]
      const clients = [new Clients(memory.ledgers), new Clients(remote.ledgers)] as const
      for (const step of steps) expect(await clients[1].take(step)).toEqual(await clients[0].take(step))
      for (const each of clients) await each.finish()
      expect([await memory.size(), await remote.size()]).toEqual([0, 0])
    })
    await fc.assert(property, { numRuns: 100 })
  }, 120_000)
})

describeLives('memory', inMemory, 100)
describeLives('Redis', inRedis, 30)
