import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { SlotContent, SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import { eventually } from '../../support/eventually.ts'
import {
  alice,
  bob,
  busy,
  callsOn,
  carol,
  held,
  idle,
  type LedgerUnderTest,
  minute,
  pod,
  slotOf,
} from './slot-ledger-calls.ts'

/** What every SlotLedger has to do for turns. */
export const describeSlotTurns = (name: string, make: () => Promise<LedgerUnderTest>): void => {
  describe(`SlotLedger: ${name}, turns`, () => {
    let under: LedgerUnderTest
    let ledger: SlotLedger
    beforeEach(async () => {
      under = await make()
      ledger = under.ledger
    })
    afterEach(() => under.close())
    const { claim, settle, release, leave } = callsOn(() => ledger)

    describe('claim', () => {
      test('a slot that nobody ever used has to be filled by the turn', async () => {
        expect(await claim(alice, 't1')).toMatchObject({
          kind: 'claimed',
          slot: 0,
          role: 'load',
          content: { kind: 'unknown' },
          others: 0,
        })
      })

      test('the slot that the session owns comes first, with what it holds', async () => {
        await leave(alice, 1)
        expect(await claim(alice, 't1')).toMatchObject({ slot: 1, role: 'check', content: held, others: 0 })
      })

      test('content without an artefact comes back as it was', async () => {
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

      test('the session leaves its own slot when something else runs there', async () => {
        await leave(alice, 0)
        expect(slotOf(await claim(alice, 't1', [...busy(0), ...idle(1)]))).toBe(1)
      })

      test('a slot without owner comes before one that another session owns', async () => {
        await leave(bob, 0)
        expect(slotOf(await claim(alice, 't1'))).toBe(1)
      })

      test('of the owned slots, the one used least recently is taken over', async () => {
        await leave(bob, 0)
        await leave(carol, 1)
        await leave(bob, 0)
        expect(await claim(alice, 't1')).toMatchObject({ slot: 1, role: 'load', content: { kind: 'unknown' } })
      })

      test.each([
        ['held by another session', idle(0)],
        ['busy', busy(0)],
        ['not reported', []],
      ])('there is no room in slots that are %s', async (_name, slots) => {
        await claim(bob, 'b1', idle(0))
        expect(await claim(alice, 't1', slots)).toEqual({ kind: 'no-room' })
      })

      test('the same turn finds the same slot again', async () => {
        await claim(alice, 't1')
        expect(await claim(alice, 't1')).toMatchObject({ slot: 0, role: 'load', others: 0 })
      })

      test('slots of another pod are other slots', async () => {
        await leave(alice, 1)
        const other = await ledger.claim({
          pod: '10.0.0.2:8080',
          session: alice,
          turnId: 't1',
          leaseMs: minute,
          loadMs: minute,
          slots: idle(0, 1),
        })
        expect(other).toMatchObject({ slot: 0, role: 'load' })
      })

      test('50 turns at once have one loader', async () => {
        const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => claim(alice, `t${index}`)))
        const roles = outcomes.map((outcome) => (outcome.kind === 'claimed' ? `${outcome.slot} ${outcome.role}` : ''))
        expect(roles.filter((role) => role === '0 load')).toHaveLength(1)
        expect(roles.filter((role) => role === '0 wait')).toHaveLength(49)
      })
    })

    describe('what runs out', () => {
      test('a lease: its slot goes to another session, which has to fill it', async () => {
        await claim(bob, 'b1', idle(0), 20)
        await settle(0, 'b1')
        await eventually(async () => slotOf(await claim(alice, 't1', idle(0))) === 0)
        expect(await claim(alice, 't1', idle(0))).toMatchObject({ role: 'load', others: 0 })
      })

      test('a load: a waiting turn of the session takes it over', async () => {
        await claim(alice, 't1', idle(0), minute, 20)
        expect(await claim(alice, 't2', idle(0))).toMatchObject({ role: 'wait', others: 1 })
        await eventually(async () => {
          const again = await claim(alice, 't2', idle(0))
          return again.kind === 'claimed' && again.role === 'load'
        })
        expect(await settle(0, 't1')).toBe(false)
        expect(await settle(0, 't2')).toBe(true)
      })

      test('the closing of a slot', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, 20)
        await release(0, 't1')
        await eventually(async () => slotOf(await claim(bob, 'b1', idle(0))) === 0)
        expect(await claim(bob, 'b1', idle(0))).toMatchObject({ role: 'load' })
      })
    })

    describe('settle', () => {
      test('lets the waiting turns go on', async () => {
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect(await settle(0, 't1')).toBe(true)
        expect(await claim(alice, 't2')).toMatchObject({ slot: 0, role: 'check', content: held })
      })

      test('is refused to a turn that does not fill the slot', async () => {
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect(await settle(0, 't2')).toBe(false)
        expect(await settle(1, 't1')).toBe(false)
      })

      test('with unknown content closes the slot to everybody until it is released with what it holds', async () => {
        await claim(alice, 't1', idle(0))
        await settle(0, 't1', { kind: 'unknown' }, minute)
        expect(await claim(alice, 't2', idle(0))).toEqual({ kind: 'no-room' })
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
        await release(0, 't1', held)
        expect(await claim(alice, 't2', idle(0))).toMatchObject({ role: 'check', content: held })
      })
    })

    describe('a closed slot', () => {
      test('is opened by the turn that closed it, even when its lease has run out', async () => {
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

      test('belongs to others once its time is over, and the turn that closed it has no say any more', async () => {
        await claim(alice, 't1', idle(0), 20)
        await settle(0, 't1', { kind: 'unknown' }, 20)
        await eventually(async () => slotOf(await claim(bob, 'b1', idle(0))) === 0)
        await settle(0, 'b1')
        await release(0, 't1', { kind: 'clean' })
        expect(await claim(bob, 'b2', idle(0))).toMatchObject({ content: held })
      })
    })

    describe('reload', () => {
      const claimed = async (turnId: string): Promise<number> => {
        const outcome = await claim(alice, turnId)
        return outcome.kind === 'claimed' ? outcome.revision : -1
      }
      const reload = (turnId: string, revision: number) =>
        ledger.reload({ pod, slot: 0, turnId, revision, loadMs: minute })

      test('makes exactly one of two turns the loader', async () => {
        await leave(alice, 0)
        const [first, second] = [await claimed('t1'), await claimed('t2')]
        expect([await reload('t1', first), await reload('t2', second)]).toEqual([true, false])
        expect(await claim(alice, 't2')).toMatchObject({ role: 'wait' })
      })

      test('is refused when the content was settled since', async () => {
        await leave(alice, 0)
        const [first, second] = [await claimed('t1'), await claimed('t2')]
        await reload('t1', first)
        await settle(0, 't1')
        expect(await reload('t2', second)).toBe(false)
      })

      test('is refused without a lease', async () => {
        await leave(alice, 0)
        const revision = await claimed('t1')
        await release(0, 't1')
        expect(await reload('t1', revision)).toBe(false)
      })
    })

    describe('beginSave', () => {
      const beginSave = (turnId: string, session = alice) =>
        ledger.beginSave({ pod, slot: 0, turnId, session, leaseMs: minute })

      test('the last of overlapping turns saves', async () => {
        await leave(alice, 0)
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect([await beginSave('t1'), await beginSave('t2')]).toEqual(['superseded', 'held'])
        expect(await release(0, 't2')).toBe(0)
      })

      test.each([
        ['a turn that never claimed', 'other', alice],
        ['a turn of another session', 't1', bob],
      ])('%s has lost', async (_name, turnId, session) => {
        await claim(alice, 't1')
        await settle(0, 't1')
        expect(await beginSave(turnId, session)).toBe('lost')
      })

      test('a lease that ran out has lost', async () => {
        await claim(alice, 't1', idle(0), 20)
        await settle(0, 't1')
        await eventually(async () => (await ledger.list()).every(({ inUse }) => !inUse))
        expect(await beginSave('t1')).toBe('lost')
      })

      test('a lease is made longer', async () => {
        await claim(alice, 't1', idle(0), 200)
        await settle(0, 't1')
        expect(await beginSave('t1')).toBe('held')
        await claim(bob, 'clock', idle(1), 200)
        await settle(1, 'clock')
        await eventually(async () => (await ledger.list()).some(({ slot, inUse }) => slot === 1 && !inUse))
        expect(await claim(bob, 'b1', idle(0))).toEqual({ kind: 'no-room' })
      })
    })

    describe('release', () => {
      test('tells how many turns still hold the slot', async () => {
        await leave(alice, 0)
        await claim(alice, 't1')
        await claim(alice, 't2')
        expect([await release(0, 't1'), await release(0, 't2'), await release(0, 't2')]).toEqual([1, 0, 0])
      })

      test('by the loader leaves unknown content', async () => {
        await leave(alice, 0)
        const outcome = await claim(alice, 't1')
        const revision = outcome.kind === 'claimed' ? outcome.revision : -1
        await ledger.reload({ pod, slot: 0, turnId: 't1', revision, loadMs: minute })
        await release(0, 't1')
        expect(await claim(alice, 't2')).toMatchObject({ slot: 0, role: 'load', content: { kind: 'unknown' } })
      })

      test('without a lease writes nothing', async () => {
        await leave(alice, 0)
        await release(0, 'stranger', { kind: 'clean' })
        expect(await claim(alice, 't1')).toMatchObject({ content: held })
      })

      test('of a slot that was never claimed is nothing', async () => {
        expect(await release(5, 't1')).toBe(0)
        expect(await ledger.list()).toEqual([])
      })
    })
  })
}
