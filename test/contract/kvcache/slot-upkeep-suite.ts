import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { eventually } from '../../support/eventually.ts'
import { alice, bob, callsOn, carol, held, idle, type LedgerUnderTest, minute, pod } from './slot-ledger-calls.ts'

/** What every SlotLedger has to do for those who clean up. */
export const describeSlotUpkeep = (name: string, make: () => Promise<LedgerUnderTest>): void => {
  describe(`SlotLedger: ${name}, upkeep`, () => {
    let under: LedgerUnderTest
    let ledger: SlotLedger
    beforeEach(async () => {
      under = await make()
      ledger = under.ledger
    })
    afterEach(() => under.close())
    const { claim, settle, release, leave } = callsOn(() => ledger)

    describe('slotsOf', () => {
      test('names every slot of the session, and no other', async () => {
        await leave(alice, 0)
        await leave(bob, 1)
        await ledger.claim({
          pod: '[::1]:9',
          session: alice,
          turnId: 't',
          leaseMs: 1,
          loadMs: 1,
          slots: idle(3),
        })
        const slots = await ledger.slotsOf(alice)
        expect(slots).toHaveLength(2)
        expect(slots).toEqual(
          expect.arrayContaining([
            { pod, slot: 0 },
            { pod: '[::1]:9', slot: 3 },
          ]),
        )
        expect(await ledger.slotsOf(carol)).toEqual([])
      })

      test('keeps a slot that was taken over until its new owner has overwritten it', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        expect(await ledger.slotsOf(bob)).toEqual([{ pod, slot: 0 }])
        await release(0, 't1')
        await claim(carol, 'c1', idle(0))
        expect(await ledger.slotsOf(alice)).toEqual([{ pod, slot: 0 }])
        await settle(0, 'c1', { kind: 'clean' })
        expect(await Promise.all([bob, alice, carol].map((session) => ledger.slotsOf(session)))).toEqual([
          [],
          [],
          [{ pod, slot: 0 }],
        ])
      })

      test('a session that takes its slot back owns it once', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        await release(0, 't1')
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'load' })
        expect(await ledger.slotsOf(bob)).toEqual([{ pod, slot: 0 }])
      })
    })

    describe('seize and wiped', () => {
      const seize = (session: SessionKey | undefined, turnId = 'w1', slot = 0, leaseMs = minute) =>
        ledger.seize({ pod, slot, turnId, session, leaseMs })

      test('empties the slot of a session', async () => {
        await leave(alice, 0)
        expect(await seize(alice)).toBe('seized')
        expect(await ledger.wiped({ pod, slot: 0, turnId: 'w1' })).toBe(true)
        expect(await ledger.slotsOf(alice)).toEqual([])
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'check', content: { kind: 'clean' } })
      })

      test('keeps every turn away meanwhile', async () => {
        await leave(alice, 0)
        await seize(alice)
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'wait' })
        await ledger.wiped({ pod, slot: 0, turnId: 'w1' })
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'check', content: { kind: 'clean' } })
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
      })

      test.each([
        ['a turn of the session uses the slot', alice, 'in-use'],
        ['another session is meant', bob, 'nothing-to-do'],
        ['no session is meant', undefined, 'in-use'],
      ])('is refused when %s', async (_name, session, expected) => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1')
        expect(await seize(session)).toBe(expected)
      })

      test('is refused while the slot is closed', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, minute)
        await release(0, 't1')
        expect(await seize(alice)).toBe('in-use')
        expect(await seize(undefined)).toBe('in-use')
      })

      test('an earlier owner’s KV can be wiped once the turn that took the slot over is gone', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        expect(await seize(bob)).toBe('in-use')
        await release(0, 't1')
        expect(await seize(bob)).toBe('seized')
      })

      test('a slot that the ledger does not know is seized without naming a session, once', async () => {
        expect(await seize(undefined)).toBe('seized')
        await ledger.wiped({ pod, slot: 0, turnId: 'w1' })
        expect(await seize(undefined, 'w2')).toBe('nothing-to-do')
      })

      test('a slot with settled content is not', async () => {
        await leave(alice, 0)
        expect(await seize(undefined)).toBe('nothing-to-do')
      })

      test('a cleaner that gives up or dies leaves the slot to the next', async () => {
        await leave(alice, 0)
        await seize(alice)
        await release(0, 'w1')
        expect(await seize(alice, 'w2', 0, 20)).toBe('seized')
        await eventually(async () => (await seize(alice, 'w3')) === 'seized')
        expect(await ledger.wiped({ pod, slot: 0, turnId: 'w2' })).toBe(false)
        expect(await ledger.wiped({ pod, slot: 0, turnId: 'w3' })).toBe(true)
      })
    })

    describe('addTrace', () => {
      test('makes a slot one of the session’s, until it is wiped', async () => {
        await ledger.addTrace({ pod, slot: 0, session: alice })
        await ledger.addTrace({ pod, slot: 0, session: alice })
        expect(await ledger.slotsOf(alice)).toEqual([{ pod, slot: 0 }])
        expect(await ledger.list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: true }])
        expect(await ledger.seize({ pod, slot: 0, turnId: 'w', session: alice, leaseMs: minute })).toBe('seized')
        await ledger.wiped({ pod, slot: 0, turnId: 'w' })
        expect(await ledger.slotsOf(alice)).toEqual([])
      })

      test('takes the slot from nobody', async () => {
        await leave(bob, 0)
        await ledger.addTrace({ pod, slot: 0, session: alice })
        expect(await ledger.slotsOf(bob)).toEqual([{ pod, slot: 0 }])
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'check', content: held })
      })

      test('says nothing new of a slot that the session owns', async () => {
        await leave(alice, 0)
        await ledger.addTrace({ pod, slot: 0, session: alice })
        expect(await ledger.list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: false }])
      })
    })

    describe('list', () => {
      test('tells what is in use and what needs a wipe', async () => {
        await leave(alice, 0)
        await claim(bob, 'b1', idle(1))
        await claim(carol, 'c1', idle(2))
        await release(2, 'c1')
        const entries = [...(await ledger.list())].sort((a, b) => a.slot - b.slot)
        expect(entries).toEqual([
          { pod, slot: 0, inUse: false, needsWipe: false, kind: 'holds', mark: 'm1' },
          { pod, slot: 1, inUse: true, needsWipe: false, kind: 'unknown', mark: undefined },
          { pod, slot: 2, inUse: false, needsWipe: true, kind: 'unknown', mark: undefined },
        ])
      })

      test('a slot that was taken over and let go again needs a wipe', async () => {
        await leave(alice, 0)
        await claim(bob, 'b1', idle(0))
        await release(0, 'b1')
        expect(await ledger.list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: true }])
      })
    })

    test('forgetPod drops everything about that pod alone', async () => {
      await leave(alice, 0)
      await ledger.claim({ pod: 'other:1', session: alice, turnId: 't', leaseMs: 1, loadMs: 1, slots: idle(0) })
      await ledger.forgetPod(pod)
      expect(await ledger.slotsOf(alice)).toEqual([{ pod: 'other:1', slot: 0 }])
      expect((await ledger.list()).map((entry) => entry.pod)).toEqual(['other:1'])
    })
  })
}
