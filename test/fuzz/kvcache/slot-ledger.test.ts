import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { ClaimOutcome, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { LedgerModel } from './ledger-model.ts'
import { anySteps, long, pod, type Step, sessions, slotIds, take } from './ledger-steps.ts'

let redis: TestRedis
let connection: RedisConnection
let ledgers = 0
beforeAll(async () => {
  redis = await startTestRedis()
  connection = await redis.connect({ commandTimeoutMs: 2000 })
}, 300_000)
afterAll(() => redis.close())

const newRedisLedger = (): SlotLedger => {
  ledgers += 1
  return createRedisSlotLedger({ ...connection, keyPrefix: `fuzz${ledgers}:` })
}

/** What each turn saw at its last claim. */
class Revisions {
  readonly #byTurn = new Map<string, number>()

  of(step: Step): number {
    return 'turnId' in step ? (this.#byTurn.get(step.turnId) ?? 0) : 0
  }

  learn(step: Step, outcome: unknown): void {
    if (step.kind !== 'claim') return
    const claim = outcome as ClaimOutcome
    if (claim.kind === 'claimed') this.#byTurn.set(step.turnId, claim.revision)
  }
}

const byNumber = (a: number, b: number): number => a - b

const keepsItsPromises = async (ledger: SlotLedger, steps: readonly Step[]): Promise<void> => {
  const model = new LedgerModel()
  const revisions = new Revisions()
  for (const step of steps) {
    const outcome = await take(ledger, step, revisions.of(step))
    revisions.learn(step, outcome)
    expect(model.learn(step, outcome)).toBeUndefined()
    for (const session of sessions) {
      const slots = (await ledger.slotsOf(session)).map(({ slot }) => slot).sort(byNumber)
      expect(slots).toEqual(model.tracesOf(session))
    }
  }
  // Whatever happened: once every turn has let go, each slot can be used by a newcomer.
  for (const [slot, { holders }] of model.slots) {
    for (const turnId of holders.keys()) await ledger.release({ pod, slot, turnId })
    for (const cleaner of ['cleaner-1', 'cleaner-2']) await ledger.release({ pod, slot, turnId: cleaner })
    for (const session of sessions) {
      for (const turn of [1, 2]) await ledger.release({ pod, slot, turnId: `${session}-${turn}` })
    }
  }
  const newcomer = { pod, leaseMs: long, loadMs: long, slots: slotIds.map((id) => ({ id, idle: true })) }
  const claimed = new Set<number>()
  for (const id of slotIds) {
    const outcome = await ledger.claim({ ...newcomer, session: `new-${id}` as SessionKey, turnId: `new-${id}` })
    expect(outcome.kind).toBe('claimed')
    if (outcome.kind === 'claimed') claimed.add(outcome.slot)
  }
  expect([...claimed].sort(byNumber)).toEqual(slotIds)
}

describe('a slot ledger under any sequence of calls', () => {
  test.each([
    ['memory', () => createMemorySlotLedger(), 500],
    ['Redis', newRedisLedger, 60],
  ])(
    '%s keeps its promises',
    async (_name, make, numRuns) => {
      await fc.assert(
        fc.asyncProperty(anySteps({ closing: false }), (steps) => keepsItsPromises(make(), steps)),
        { numRuns },
      )
    },
    60_000,
  )

  test('memory and Redis answer alike', async () => {
    const property = fc.asyncProperty(anySteps({ closing: true }), async (steps) => {
      const [memory, remote] = [createMemorySlotLedger(), newRedisLedger()]
      const revisions = new Revisions()
      for (const step of steps) {
        const expected = await take(memory, step, revisions.of(step))
        expect(await take(remote, step, revisions.of(step))).toEqual(expected)
        revisions.learn(step, expected)
        const bySlot = (a: { readonly slot: number }, b: { readonly slot: number }): number => a.slot - b.slot
        expect([...(await remote.list())].sort(bySlot)).toEqual([...(await memory.list())].sort(bySlot))
      }
    })
    await fc.assert(property, { numRuns: 150 })
  }, 60_000)
})
