import { beforeEach } from '@jest/globals'
import type { ClaimOutcome, SlotContent, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'

export const alice = 'alice' as SessionKey
export const bob = 'bob' as SessionKey
export const carol = 'carol' as SessionKey
export const pod = '10.0.0.1:8080'
export const minute = 60_000
export const held: SlotContent = { kind: 'holds', artefactId: 'a1', tokens: 100, mark: 'm1' }
export const idle = (...ids: readonly number[]) => ids.map((id) => ({ id, idle: true }))
export const busy = (...ids: readonly number[]) => ids.map((id) => ({ id, idle: false }))

export const slotOf = (outcome: ClaimOutcome): number | undefined =>
  outcome.kind === 'claimed' ? outcome.slot : undefined

/** A fresh ledger for each test, and calls with defaults: slots 0 and 1 of one pod, and times that do not run out. */
export const useLedger = (make: () => Promise<SlotLedger>) => {
  let ledger: SlotLedger
  beforeEach(async () => {
    ledger = await make()
  })
  const claim = (session: SessionKey, turnId: string, slots = idle(0, 1), leaseMs = minute, loadMs = minute) =>
    ledger.claim({ pod, session, turnId, leaseMs, loadMs, slots })
  const settle = (slot: number, turnId: string, content: SlotContent = held, closeMs = 0) =>
    ledger.settle({ pod, slot, turnId, content, closeMs })
  const release = (slot: number, turnId: string, content?: SlotContent) =>
    ledger.release({ pod, slot, turnId, ...(content === undefined ? {} : { content }) })
  return {
    ledger: () => ledger,
    claim,
    settle,
    release,
    /** Has a turn of the session leave {@link held} in the slot. */
    leave: async (session: SessionKey, slot: number): Promise<void> => {
      await claim(session, `${session}-before`, idle(slot))
      await settle(slot, `${session}-before`)
      await release(slot, `${session}-before`)
    },
    /** Claims and resolves to the revision that a reload needs. */
    revisionOf: async (session: SessionKey, turnId: string): Promise<number> => {
      const outcome = await claim(session, turnId)
      return outcome.kind === 'claimed' ? outcome.revision : -1
    },
    reload: (turnId: string, revision: number) => ledger.reload({ pod, slot: 0, turnId, revision, loadMs: minute }),
    seize: (session: SessionKey | undefined, turnId = 'w1', leaseMs = minute) =>
      ledger.seize({ pod, slot: 0, turnId, session, leaseMs }),
    wiped: (turnId = 'w1') => ledger.wiped({ pod, slot: 0, turnId }),
    addTrace: (session: SessionKey) => ledger.addTrace({ pod, slot: 0, session }),
  }
}

export type LedgerCalls = ReturnType<typeof useLedger>
