import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { createOpenClaims, leaseMs, type OpenClaims } from '../../../../src/kvcache/llamacpp-slots/open-claims.ts'
import { createMemorySlotLedger } from '../../../../src/kvcache/slots/memory-slot-ledger.ts'
import type { SlotLedger } from '../../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../../src/sessions/session-record.ts'

const pod = '10.0.0.1:8080'
const maxTurnMs = 60_000
let ledger: SlotLedger
let claims: OpenClaims
let renewals: number
let isAway: boolean
beforeEach(() => {
  jest.useFakeTimers()
  renewals = 0
  isAway = false
  const memory = createMemorySlotLedger()
  ledger = {
    ...memory,
    renew: async (...call) => {
      renewals += 1
      if (isAway) throw new Error('the ledger is away')
      return memory.renew(...call)
    },
  }
  claims = createOpenClaims(ledger, { maxTurnMs, log: { debug: () => {}, info: () => {}, warn: () => {} } })
})
afterEach(() => {
  claims.close()
  jest.useRealTimers()
})

const inUse = async (): Promise<readonly number[]> => {
  const seized = await Promise.all([0, 1].map((slot) => ledger.seize({ pod, slot, turnId: 'other', leaseMs: 0 })))
  return seized.flatMap((found, slot) => (found === undefined ? slot : []))
}
const open = async (slot: number, turnId: string): Promise<void> => {
  const slots = [{ id: slot, idle: true }]
  const request = { pod, session: 'alice' as SessionKey, leaseMs, artefactId: undefined, mayWait: false, slots }
  await ledger.claim({ ...request, turnId })
  claims.add({ pod, slot, turnId })
}

describe('leases of the slots that a process holds', () => {
  test('last as long as their turns, and are renewed in one call', async () => {
    await open(0, 't0')
    await open(1, 't1')
    await jest.advanceTimersByTimeAsync(20_000)
    expect([await inUse(), renewals]).toEqual([[0, 1], 10])
  })

  test.each<{ name: string; lose: () => Promise<void> | void }>([
    { name: 'the process is killed', lose: () => claims.close() },
    { name: 'the turn is dropped', lose: () => claims.drop('t0') },
    {
      name: 'the ledger cannot be reached',
      lose: () => {
        isAway = true
      },
    },
  ])('end within 6 seconds when $name', async ({ lose }) => {
    await open(0, 't0')
    await jest.advanceTimersByTimeAsync(3_000)
    await lose()
    await jest.advanceTimersByTimeAsync(leaseMs)
    expect(await inUse()).toEqual([])
  })

  test('are not renewed once another process released them', async () => {
    await open(0, 't0')
    await ledger.release({ pod, slot: 0, turnId: 't0' })
    await jest.advanceTimersByTimeAsync(10_000)
    expect([await inUse(), renewals]).toEqual([[], 1])
  })

  test('end after the longest time of a turn whose end is never reported', async () => {
    await open(0, 't0')
    await jest.advanceTimersByTimeAsync(maxTurnMs)
    expect(await inUse()).toEqual([0])
    await jest.advanceTimersByTimeAsync(2 * leaseMs)
    expect(await inUse()).toEqual([])
  })
})
