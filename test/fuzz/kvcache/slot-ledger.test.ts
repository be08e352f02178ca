import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createMemorySlotLedger } from '../../../src/kvcache/slots/memory-slot-ledger.ts'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { ClaimOutcome, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { RedisConnection } from '../../../src/redis/redis-connection.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts'
import { LedgerModel } from './ledger-model.ts'
import { anySteps, long, pod, type Step, sessions, slotIds, take, turnOf } from './ledger-steps.ts'

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
    return this.#byTurn.get(turnOf(step)) ?? 0
  }

  learn(step: Step, outcome: unknown): void {
    if (step.kind !== 'claim') return
    const claim = outcome as ClaimOutcome
    if (claim.kind === 'claimed') this.#byTurn.set(turnOf(step), claim.revision)
  }
}

const byNumber = (a: number, b: number): number => a - b
const slotsOf = async (ledger: SlotLedger, session: SessionKey): Promise<readonly number[]> =>
  (await ledger.slotsOf(session)).map(({ slot }) => slot).sort(byNumber)
const releaseAll = async (ledger: SlotLedger, slot: number): Promise<void> => {
  const turnIds = [...sessions, 'cleaner'].flatMap((owner) => [`${owner}-1`, `${owner}-2`])
  for (const turnId of turnIds) await ledger.release({ pod, slot, turnId })
}
const entriesOf = async (ledger: SlotLedger) => [...(await ledger.list())].sort((a, b) => a.slot - b.slot)

describe('slot ledgers under any sequence of calls', () => {
  test('keep their promises, and give every slot to a newcomer once all turns have released them', async () => {
    const property = fc.asyncProperty(anySteps, async (steps) => {
      const [ledger, model, revisions] = [createMemorySlotLedger(), new LedgerModel(), new Revisions()]
      for (const step of steps.map((each) => ({ ...each, closeMs: 0 }))) {
        const outcome = await take(ledger, step, revisions.of(step))
        revisions.learn(step, outcome)
        expect(model.learn(step, outcome)).toBeUndefined()
        for (const session of sessions) expect(await slotsOf(ledger, session)).toEqual(model.tracesOf(session))
      }
      for (const slot of slotIds) await releaseAll(ledger, slot)
      const newcomer = { pod, leaseMs: long, loadMs: long, slots: slotIds.map((id) => ({ id, idle: true })) }
      const claimed: unknown[] = []
      for (const id of slotIds) {
        const outcome = await ledger.claim({ ...newcomer, session: `new-${id}` as SessionKey, turnId: `new-${id}` })
        claimed.push(outcome.kind === 'claimed' ? outcome.slot : outcome.kind)
      }
      expect(new Set(claimed)).toEqual(new Set(slotIds))
    })
    await fc.assert(property, { numRuns: 500 })
  }, 120_000)

  test('answer alike in memory and in Redis', async () => {
    const property = fc.asyncProperty(anySteps, async (steps) => {
      const [memory, remote, revisions] = [createMemorySlotLedger(), newRedisLedger(), new Revisions()]
      for (const step of steps) {
        const expected = await take(memory, step, revisions.of(step))
        expect(await take(remote, step, revisions.of(step))).toEqual(expected)
        revisions.learn(step, expected)
        expect(await entriesOf(remote)).toEqual(await entriesOf(memory))
        expect(await slotsOf(remote, step.session)).toEqual(await slotsOf(memory, step.session))
      }
    })
    await fc.assert(property, { numRuns: 150 })
  }, 120_000)
})
