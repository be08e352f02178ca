import { describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/eventually.ts'
import { alice, bob, carol, held, idle, type LedgerCalls, minute, pod } from './slot-ledger-calls.ts'

/** The contract of SlotLedger for removal and reconciliation. */
export const describeSlotUpkeep = (calls: LedgerCalls): void => {
  const { ledger, claim, settle, release, leave, seize, wiped, addTrace } = calls

  describe('upkeep', () => {
    describe('slotsOf', () => {
      test('returns all slots of the session, and no others', async () => {
        await leave(alice, 0)
        await leave(bob, 1)
        const other = { pod: '[::1]:9', leaseMs: 1, loadMs: 1, slots: idle(3) }
        await ledger().claim({ ...other, session: alice, turnId: 't' })
        const slots = await ledger().slotsOf(alice)
        expect([...slots].sort((a, b) => a.slot - b.slot)).toEqual([
          { pod, slot: 0 },
          { pod: '[::1]:9', slot: 3 },
        ])
        expect(await ledger().slotsOf(carol)).toEqual([])
      })

      test('includes a slot that was taken over until its new owner has settled it', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        expect(await ledger().slotsOf(bob)).toEqual([{ pod, slot: 0 }])
        await release(0, 't1')
        await claim(carol, 'c1', idle(0))
        expect(await ledger().slotsOf(alice)).toEqual([{ pod, slot: 0 }])
        await settle(0, 'c1', { kind: 'clean' })
        const slots = await Promise.all([bob, alice, carol].map((session) => ledger().slotsOf(session)))
        expect(slots).toEqual([[], [], [{ pod, slot: 0 }]])
      })

      test('a session that takes its slot back has it once', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        await release(0, 't1')
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'load' })
        expect(await ledger().slotsOf(bob)).toEqual([{ pod, slot: 0 }])
      })
    })

    describe('seize and wiped', () => {
      test('empty the slot of a session', async () => {
        await leave(alice, 0)
        expect(await seize(alice)).toBe('seized')
        expect(await wiped()).toBe(true)
        expect(await ledger().slotsOf(alice)).toEqual([])
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'check', content: { kind: 'clean' } })
      })

      test('keep turns out until the slot is wiped', async () => {
        await leave(alice, 0)
        await seize(alice)
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'wait' })
        await wiped()
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'check', content: { kind: 'clean' } })
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
      })

      test.each([
        { name: 'the session of the turn', session: alice, expected: 'in-use' },
        { name: 'another session', session: bob, expected: 'nothing-to-do' },
        { name: 'no session', session: undefined, expected: 'in-use' },
      ])('seize for $name is $expected while a turn holds the slot', async ({ session, expected }) => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1')
        expect(await seize(session)).toBe(expected)
      })

      test('seize is refused while the slot is closed', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, minute)
        await release(0, 't1')
        expect(await seize(alice)).toBe('in-use')
        expect(await seize(undefined)).toBe('in-use')
      })

      test('KV of an earlier owner can be wiped once the turn that took the slot over has released it', async () => {
        await leave(bob, 0)
        await claim(alice, 't1', idle(0))
        expect(await seize(bob)).toBe('in-use')
        await release(0, 't1')
        expect(await seize(bob)).toBe('seized')
      })

      test('a slot unknown to the ledger is seized once, for no session', async () => {
        expect(await seize(undefined)).toBe('seized')
        await wiped()
        expect(await seize(undefined, 'w2')).toBe('nothing-to-do')
      })

      test('a slot with settled content is not seized for no session', async () => {
        await leave(alice, 0)
        expect(await seize(undefined)).toBe('nothing-to-do')
      })

      test('a seized slot that is released, or whose lease runs out, can be seized again', async () => {
        await leave(alice, 0)
        await seize(alice)
        await release(0, 'w1')
        expect(await seize(alice, 'w2', 20)).toBe('seized')
        await eventually(async () => (await seize(alice, 'w3')) === 'seized')
        expect(await wiped('w2')).toBe(false)
        expect(await wiped('w3')).toBe(true)
      })
    })

    describe('addTrace', () => {
      test('adds a slot to the session until it is wiped', async () => {
        await addTrace(alice)
        await addTrace(alice)
        expect(await ledger().slotsOf(alice)).toEqual([{ pod, slot: 0 }])
        expect(await ledger().list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: true }])
        expect(await seize(alice)).toBe('seized')
        await wiped()
        expect(await ledger().slotsOf(alice)).toEqual([])
      })

      test('leaves the slot to its owner', async () => {
        await leave(bob, 0)
        await addTrace(alice)
        expect(await ledger().slotsOf(bob)).toEqual([{ pod, slot: 0 }])
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'check', content: held })
      })

      test('changes nothing of a slot that the session owns', async () => {
        await leave(alice, 0)
        await addTrace(alice)
        expect(await ledger().list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: false }])
      })
    })

    describe('list', () => {
      test('returns which slots are in use and which need a wipe', async () => {
        await leave(alice, 0)
        await claim(bob, 'b1', idle(1))
        await claim(carol, 'c1', idle(2))
        await release(2, 'c1')
        const entries = [...(await ledger().list())].sort((a, b) => a.slot - b.slot)
        expect(entries).toEqual([
          { pod, slot: 0, inUse: false, needsWipe: false, kind: 'holds', mark: 'm1' },
          { pod, slot: 1, inUse: true, needsWipe: false, kind: 'unknown', mark: undefined },
          { pod, slot: 2, inUse: false, needsWipe: true, kind: 'unknown', mark: undefined },
        ])
      })

      test('a slot that was taken over and released needs a wipe', async () => {
        await leave(alice, 0)
        await claim(bob, 'b1', idle(0))
        await release(0, 'b1')
        expect(await ledger().list()).toMatchObject([{ pod, slot: 0, inUse: false, needsWipe: true }])
      })
    })

    test('forgetPod removes the slots of that pod alone', async () => {
      await leave(alice, 0)
      await ledger().claim({ pod: 'other:1', session: alice, turnId: 't', leaseMs: 1, loadMs: 1, slots: idle(0) })
      await ledger().forgetPod(pod)
      expect(await ledger().slotsOf(alice)).toEqual([{ pod: 'other:1', slot: 0 }])
      expect((await ledger().list()).map((entry) => entry.pod)).toEqual(['other:1'])
    })
  })
}
