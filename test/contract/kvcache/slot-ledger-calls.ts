import type { ClaimOutcome, SlotContent, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'

/** A ledger of its own for one test. */
export interface LedgerUnderTest {
  readonly ledger: SlotLedger
  close(): Promise<void>
}

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

/** The calls of a turn, on one pod and with times that do not run out. */
export const callsOn = (ledger: () => SlotLedger) => {
  const claim = (session: SessionKey, turnId: string, slots = idle(0, 1), leaseMs = minute, loadMs = minute) =>
    ledger().claim({ pod, session, turnId, leaseMs, loadMs, slots })
  const settle = (slot: number, turnId: string, content: SlotContent = held, closeMs = 0) =>
    ledger().settle({ pod, slot, turnId, content, closeMs })
  const release = (slot: number, turnId: string, content?: SlotContent) =>
    ledger().release({ pod, slot, turnId, ...(content === undefined ? {} : { content }) })
  /** A session that has used slot `slot` before and left KV there. */
  const leave = async (session: SessionKey, slot: number): Promise<void> => {
    await claim(session, `${session}-before`, idle(slot))
    await settle(slot, `${session}-before`)
    await release(slot, `${session}-before`)
  }
  return { claim, settle, release, leave }
}
