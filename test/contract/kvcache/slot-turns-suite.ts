import { describe, expect, test } from '@jest/globals'
import type { SlotContent } from '../../../src/kvcache/slots/slot-ledger.ts'
import { eventually } from '../../support/eventually.ts'
import { alice, bob, busy, carol, held, idle, type LedgerCalls, minute, pod, slotOf } from './slot-ledger-calls.ts'

/** The contract of SlotLedger for turns. */
export const describeSlotTurns = ({ ledger, claim, settle, release, leave, revisionOf, reload }: LedgerCalls): void => {
  describe('turns', () => {
    describe('claim', () => {
      test('a slot that was never used has to be loaded by the turn', async () => {
        expect(await claim(alice, 't1')).toMatchObject({
          kind: 'claimed',
          slot: 0,
          role: 'load',
          content: { kind: 'unknown' },
          others: 0,
        })
      })

      test('the slot of the session is preferred, and its content returned', async () => {
        await leave(alice, 1)
        expect(await claim(alice, 't1')).toMatchObject({ slot: 1, role: 'check', content: held, others: 0 })
      })

      test('content without an artefact is returned unchanged', async () => {
        const content: SlotContent = { kind: 'holds', artefactId: undefined, tokens: 7, mark: '[null,3]' }
        await claim(alice, 't1')
        await settle(0, 't1', content)
        expect(await claim(alice, 't2')).toMatchObject({ content })
      })

      test('overlapping turns of a session share its slot', async () => {
        await leave(alice, 0)
        await claim(alice, 't1')
        expect(await claim(alice, 't2', [...busy(0), ...idle(1)])).toMatchObject({ slot: 0, role: 'check', others: 1 })
      })

      test('a session gets another slot while a foreign request runs in its own', async () => {
        await leave(alice, 0)
        expect(slotOf(await claim(alice, 't1', [...busy(0), ...idle(1)]))).toBe(1)
      })

      test('a slot without owner is preferred to one of another session', async () => {
        await leave(bob, 0)
        expect(slotOf(await claim(alice, 't1'))).toBe(1)
      })

      test('without a free slot, the least recently used one is taken over', async () => {
        await leave(bob, 0)
        await leave(carol, 1)
        await leave(bob, 0)
        expect(await claim(alice, 't1')).toMatchObject({ slot: 1, role: 'load', content: { kind: 'unknown' } })
      })

      test.each([
        { name: 'held by another session', slots: idle(0) },
        { name: 'busy', slots: busy(0) },
        { name: 'not reported', slots: [] },
      ])('there is no room when the slot is $name', async ({ slots }) => {
        await claim(bob, 'b1', idle(0))
        expect(await claim(alice, 't1', slots)).toEqual({ kind: 'no-room' })
      })

      test('a repeated claim of a turn returns the same slot', async () => {
        await claim(alice, 't1')
        expect(await claim(alice, 't1')).toMatchObject({ slot: 0, role: 'load', others: 0 })
      })

      test('slots of two pods are independent', async () => {
        await leave(alice, 1)
        const other = { pod: '10.0.0.2:8080', leaseMs: minute, loadMs: minute, slots: idle(0, 1) }
        expect(await ledger().claim({ ...other, session: alice, turnId: 't1' })).toMatchObject({
          slot: 0,
          role: 'load',
        })
      })

      test('of 50 concurrent turns, one loads and the others wait', async () => {
        const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => claim(alice, `t${index}`)))
        const roles = outcomes.map((outcome) => (outcome.kind === 'claimed' ? `${outcome.slot} ${outcome.role}` : ''))
        expect(roles.filter((role) => role === '0 load')).toHaveLength(1)
        expect(roles.filter((role) => role === '0 wait')).toHaveLength(49)
      })
    })

    describe('expiry', () => {
      test('a slot whose lease ran out goes to another session, which has to load it', async () => {
        await claim(bob, 'b1', idle(0), 20)
        await settle(0, 'b1')
        await eventually(async () => slotOf(await claim(alice, 't1', idle(0))) === 0)
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'load', others: 0 })
      })

      test('a load that ran out of time is taken over by a waiting turn of the session', async () => {
        await claim(alice, 't1', idle(0), minute, 20)
        expect(await claim(alice, 't2', idle(0))).toMatchObject({ role: 'wait', others: 1 })
        await eventually(async () => {
          const again = await claim(alice, 't2', idle(0))
          return again.kind === 'claimed' && again.role === 'load'
        })
        expect(await settle(0, 't1')).toBe(false)
        expect(await settle(0, 't2')).toBe(true)
      })

      test('a closed slot opens when its time is over', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, 20)
        await release(0, 't1')
        await eventually(async () => slotOf(await claim(bob, 'b1', idle(0))) === 0)
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'load' })
      })
    })

    describe('settle', () => {
      test('lets waiting turns continue', async () => {
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect(await settle(0, 't1')).toBe(true)
        expect(await claim(alice, 't2')).toMatchObject({ slot: 0, role: 'check', content: held })
      })

      test('is refused to a turn that does not load the slot', async () => {
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect(await settle(0, 't2')).toBe(false)
        expect(await settle(1, 't1')).toBe(false)
      })

      test('with unknown content closes the slot to all turns until it is released with content', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, minute)
        expect(await claim(alice, 't2', idle(0))).toEqual({ kind: 'no-room' })
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
        await release(0, 't1', held)
        expect(await claim(alice, 't2', idle(0))).toMatchObject({ role: 'check', content: held })
      })
    })

    describe('a closed slot', () => {
      test('is opened by the turn that closed it, also after its lease ran out', async () => {
        await claim(alice, 't1', idle(0), 0)
        await settle(0, 't1', { kind: 'unknown' }, minute)
        await release(0, 't1', { kind: 'clean' })
        expect(await claim(alice, 't2', idle(0))).toMatchObject({
          role: 'check',
          content: { kind: 'clean' },
          others: 0,
        })
      })

      test('is not opened by another turn', async () => {
        await claim(alice, 't1', idle(0))
        await claim(alice, 't2', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, minute)
        await release(0, 't2', held)
        expect(await claim(alice, 't3', idle(0))).toEqual({ kind: 'no-room' })
      })

      test('ignores the turn that closed it once its time is over', async () => {
        await claim(alice, 't1', idle(0), 20)
        await settle(0, 't1', { kind: 'unknown' }, 20)
        await eventually(async () => slotOf(await claim(bob, 'b1', idle(0))) === 0)
        await settle(0, 'b1')
        await release(0, 't1', { kind: 'clean' })
        expect(await claim(bob, 'b2', idle(0))).toMatchObject({ content: held })
      })
    })

    describe('reload', () => {
      test('makes one of two turns the loader', async () => {
        await leave(alice, 0)
        const [first, second] = [await revisionOf(alice, 't1'), await revisionOf(alice, 't2')]
        expect([await reload('t1', first), await reload('t2', second)]).toEqual([true, false])
        expect(await claim(alice, 't2')).toMatchObject({ role: 'wait' })
      })

      test('is refused when the content was settled since the claim', async () => {
        await leave(alice, 0)
        const [first, second] = [await revisionOf(alice, 't1'), await revisionOf(alice, 't2')]
        await reload('t1', first)
        await settle(0, 't1')
        expect(await reload('t2', second)).toBe(false)
      })

      test('is refused without a lease', async () => {
        await leave(alice, 0)
        const revision = await revisionOf(alice, 't1')
        await release(0, 't1')
        expect(await reload('t1', revision)).toBe(false)
      })
    })

    describe('beginSave', () => {
      const beginSave = (turnId: string, session = alice) =>
        ledger().beginSave({ pod, slot: 0, turnId, session, leaseMs: minute })

      test('of overlapping turns, the last one saves', async () => {
        await leave(alice, 0)
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect([await beginSave('t1'), await beginSave('t2')]).toEqual(['superseded', 'held'])
        expect(await release(0, 't2')).toBe(0)
      })

      test.each([
        { name: 'a turn that never claimed', turnId: 'other', session: alice },
        { name: 'a turn of another session', turnId: 't1', session: bob },
      ])('$name has lost', async ({ turnId, session }) => {
        await claim(alice, 't1')
        await settle(0, 't1')
        expect(await beginSave(turnId, session)).toBe('lost')
      })

      test('a turn whose lease ran out has lost', async () => {
        await claim(alice, 't1', idle(0), 20)
        await settle(0, 't1')
        await eventually(async () => (await ledger().list()).every(({ inUse }) => !inUse))
        expect(await beginSave('t1')).toBe('lost')
      })

      test('the lease is extended', async () => {
        await claim(alice, 't1', idle(0), 200)
        await settle(0, 't1')
        expect(await beginSave('t1')).toBe('held')
        await claim(bob, 'clock', idle(1), 200)
        await settle(1, 'clock')
        await eventually(async () => (await ledger().list()).some(({ slot, inUse }) => slot === 1 && !inUse))
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
      })
    })

    describe('release', () => {
      test('returns how many turns still hold the slot', async () => {
        await leave(alice, 0)
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect([await release(0, 't1'), await release(0, 't2'), await release(0, 't2')]).toEqual([1, 0, 0])
      })

      test('by the loader leaves unknown content', async () => {
        await leave(alice, 0)
        await reload('t1', await revisionOf(alice, 't1'))
        await release(0, 't1')
        expect(await claim(alice, 't2')).toMatchObject({ slot: 0, role: 'load', content: { kind: 'unknown' } })
      })

      test('without a lease changes nothing', async () => {
        await leave(alice, 0)
        await release(0, 'stranger', { kind: 'clean' })
        expect(await claim(alice, 't1')).toMatchObject({ content: held })
      })

      test('of a slot that was never claimed changes nothing', async () => {
        expect(await release(5, 't1')).toBe(0)
        expect(await ledger().list()).toEqual([])
      })
    })
  })
}
