import { describe, expect, test } from '@jest/globals'
import type { PreparedTurn } from '../../../src/kvcache/kv-cache.ts'
import type { EngineFields } from '../../../src/kvcache/kv-connector.ts'
import { fieldsWithoutSlot } from '../../../src/kvcache/llamacpp-slots/claim.ts'
import { leaseMs } from '../../../src/kvcache/llamacpp-slots/open-claims.ts'
import { anySignal, newSession, removeSession, turnOf } from '../../contract/kvcache/kv-test-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotsTestBed } from './slots-test-bed.ts'
import { useSlots } from './use-slots.ts'

/** What a client that names a slot gets: the gateway's fields win. */
const withSlot = (slot: number, fields: EngineFields): EngineFields => ({ id_slot: slot, ...fields })

/** Turns that share a pod: what keeps them apart, who holds which slot, and what a turn costs the engine. */
export const describeSlotTurns = (make: () => Promise<SlotsTestBed>): void => {
  describe('turns in slots', () => {
    const { kit, serveWith, ownSlot } = useSlots(make)
    const { serve, prepare, begin } = kit

    describe('requests that repeat the conversation of a session', () => {
      const others: readonly { readonly name: string; readonly fields: () => Promise<EngineFields> }[] = [
        { name: 'turn without a session', fields: async () => kit.cache.isolation(kit.session.tenant) },
        {
          name: 'turn without a session whose client names the slot',
          fields: async () => withSlot(await ownSlot(), kit.cache.isolation(kit.session.tenant)),
        },
        {
          name: 'request of which no gateway knows',
          fields: async () => withSlot(await ownSlot(), fieldsWithoutSlot),
        },
        {
          name: 'first turn of another session',
          fields: async () =>
            (await kit.cache.prepare(turnOf(newSession(), kit.first), { signal: anySignal() })).fields,
        },
        {
          name: 'turn whose load took too long',
          fields: async () => {
            const turn = turnOf(kit.session, kit.first)
            const late = await kit.cache.prepare(turn, { signal: AbortSignal.abort() })
            return withSlot(await ownSlot(), late.fields)
          },
        },
      ]
      test.each(others)('$name starts from no KV', async ({ fields }) => {
        await begin()
        expect((await kit.first.run({ prompt: kit.prompt, fields: await fields() })).cachedTokens).toBe(0)
      })
    })

    test('two overlapping turns of a session run in slots of their own', async () => {
      const stored = await begin()
      const prepared = [
        await prepare(kit.first, stored),
        await prepare(kit.first, stored),
        await prepare(kit.first, stored),
      ]
      expect(prepared.map(({ presence }) => presence)).toMatchObject([
        { kind: 'hit', tier: 'gpu' },
        { kind: 'hit', tier: 'store' },
        { kind: 'miss', reason: 'no_slot' },
      ])
    })

    test('turn waits for the slot of the turn before while it is being saved', async () => {
      const prepared: PreparedTurn[] = []
      const finished = await serveWith(async () => {
        kit.first.proxy.onRequest((line) => {
          if (!line.includes('action=save')) return
          void prepare(kit.first).then((next) => prepared.push(next))
        })
      })
      await eventually(async () => prepared.length === 1)
      expect(finished.kind).toBe('stored')
      expect(prepared[0]?.presence).toMatchObject({ kind: 'hit', tier: 'gpu' })
    })

    test.each([
      { name: 'stored', isTaken: false, expected: { kind: 'stored' } },
      { name: 'not stored when another turn took its slot', isTaken: true, expected: { reason: 'not_verified' } },
    ])('a turn whose lease ran out is $name', async ({ isTaken, expected }) => {
      const finished = await serveWith(async (place) => {
        await kit.bed.ledger.renew([place], { leaseMs: 0 })
        const other = { session: newSession().key, turnId: 'other', leaseMs, artefactId: undefined, mayWait: false }
        if (isTaken) await kit.bed.ledger.claim({ ...other, pod: place.pod, slots: [{ id: place.slot, idle: true }] })
      })
      expect(finished).toMatchObject(expected)
    })

    test('a removal calls no engine that holds nothing of the session', async () => {
      const stored = await begin()
      const calls: string[] = []
      kit.second.proxy.onRequest((line) => void calls.push(line))
      expect(await removeSession(kit.cache, kit.session, stored)).toEqual({ kind: 'removed' })
      expect(calls).toEqual([])
    })

    test.each([
      { name: 'warm turn', pod: () => kit.first, most: 3 },
      { name: 'turn that moves to another pod', pod: () => kit.second, most: 8 },
    ])('$name makes at most $most engine calls', async ({ pod, most }) => {
      const stored = await begin()
      const calls: string[] = []
      pod().proxy.onRequest((line) => void calls.push(line))
      const { finished } = await serve(pod(), stored, `${kit.prompt} And one more question.`)
      expect(finished.kind).toBe('stored')
      expect(calls.length).toBeLessThanOrEqual(most)
    })
  })
}
