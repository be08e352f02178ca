import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { KvCache, PreparedTurn } from '../../../src/kvcache/kv-cache.ts'
import type { EngineFields, KvArtefact } from '../../../src/kvcache/kv-connector.ts'
import { fieldsWithoutSlot } from '../../../src/kvcache/llamacpp-slots/claim.ts'
import { leaseMs } from '../../../src/kvcache/llamacpp-slots/open-claims.ts'
import type { SlotTurn } from '../../../src/kvcache/slots/slot-ledger.ts'
import {
  anySignal,
  finishTurn,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const timeoutMs = 60_000

/** What a client that names a slot gets: the gateway's fields win. */
const withSlot = (slot: number, fields: EngineFields): EngineFields => ({ id_slot: slot, ...fields })

/** Turns that share a pod: what keeps them apart, who holds which slot, and what a turn costs the engine. */
export const describeSlotTurns = (make: () => Promise<SlotsTestBed>): void => {
  describe('turns in slots', () => {
    let bed: SlotsTestBed
    let cache: KvCache
    let first: SlotPod
    let second: SlotPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      cache = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(async () => {
      for (const pod of bed.pods) pod.proxy.onRequest(() => {})
      await bed.close()
    }, timeoutMs)

    const serve = (pod: SlotPod, stored?: KvArtefact, text = prompt) =>
      serveTurn(cache, { session, pod, prompt: text, stored })
    const prepare = (pod: SlotPod, stored?: KvArtefact) =>
      cache.prepare(turnOf(session, pod, { stored }), { signal: anySignal() })
    const begin = async (): Promise<KvArtefact> => {
      const { stored } = await serve(first)
      if (stored === undefined) throw new Error('the first turn stored nothing')
      return stored
    }
    /** Serves the first turn; `meanwhile` happens between its response and its finish. */
    const serveFirst = async (meanwhile: (place: SlotTurn) => Promise<unknown>) => {
      const turn = turnOf(session, first)
      const { fields, claim } = await cache.prepare(turn, { signal: anySignal() })
      const usage = await first.run({ prompt, sessionId: session.id, fields })
      await meanwhile({ pod: first.address, slot: Number(fields['id_slot']), turnId: turn.turnId })
      return finishTurn(cache, turn, { claim, usage })
    }
    /** The slot of the first pod in which the session's KV lies. */
    const ownSlot = async (): Promise<number> => {
      const entries = await bed.ledger.list(first.address)
      return entries.find(({ owner }) => owner === session.key)?.slot ?? -1
    }

    describe('requests that repeat the conversation of a session', () => {
      const others: readonly { readonly name: string; readonly fields: () => Promise<EngineFields> }[] = [
        { name: 'turn without a session', fields: async () => cache.isolation(session.tenant) },
        {
          name: 'turn without a session whose client names the slot',
          fields: async () => withSlot(await ownSlot(), cache.isolation(session.tenant)),
        },
        {
          name: 'request of which no gateway knows',
          fields: async () => withSlot(await ownSlot(), fieldsWithoutSlot),
        },
        {
          name: 'first turn of another session',
          fields: async () => (await cache.prepare(turnOf(newSession(), first), { signal: anySignal() })).fields,
        },
        {
          name: 'turn whose load took too long',
          fields: async () => {
            const turn = turnOf(session, first)
            const late = await cache.prepare(turn, { signal: AbortSignal.abort() })
            return withSlot(await ownSlot(), late.fields)
          },
        },
      ]
      test.each(others)('$name starts from no KV', async ({ fields }) => {
        await begin()
        expect((await first.run({ prompt, fields: await fields() })).cachedTokens).toBe(0)
      })
    })

    test('two overlapping turns of a session run in slots of their own', async () => {
      const stored = await begin()
      const prepared = [await prepare(first, stored), await prepare(first, stored), await prepare(first, stored)]
      expect(prepared.map(({ presence }) => presence)).toMatchObject([
        { kind: 'hit', tier: 'gpu' },
        { kind: 'hit', tier: 'store' },
        { kind: 'miss', reason: 'no_slot' },
      ])
    })

    test('turn waits for the slot of the turn before while it is being saved', async () => {
      const prepared: PreparedTurn[] = []
      const finished = await serveFirst(async () => {
        first.proxy.onRequest((line) => {
          if (!line.includes('action=save')) return
          void prepare(first).then((next) => prepared.push(next))
        })
      })
      await eventually(async () => prepared.length === 1)
      expect([finished.kind, prepared[0]?.presence]).toEqual([
        'stored',
        { kind: 'hit', tier: 'gpu', tokens: expect.any(Number) },
      ])
    })

    test.each([
      { name: 'stored', isTaken: false, expected: { kind: 'stored' } },
      { name: 'not stored when another turn took its slot', isTaken: true, expected: { reason: 'not_verified' } },
    ])('a turn whose lease ran out is $name', async ({ isTaken, expected }) => {
      const finished = await serveFirst(async (place) => {
        await bed.ledger.renew([place], { leaseMs: 0 })
        const other = {
          session: newSession().key,
          turnId: 'other',
          leaseMs,
          artefactId: undefined,
          mayWait: false,
        }
        if (isTaken) await bed.ledger.claim({ ...other, pod: place.pod, idle: [place.slot] })
      })
      expect(finished).toMatchObject(expected)
    })

    test.each([
      { name: 'warm turn', pod: () => first, most: 3 },
      { name: 'turn that moves to another pod', pod: () => second, most: 8 },
    ])('$name makes at most $most engine calls', async ({ pod, most }) => {
      const stored = await begin()
      const calls: string[] = []
      pod().proxy.onRequest((line) => void calls.push(line))
      const { finished } = await serve(pod(), stored, `${prompt} And one more question.`)
      expect(finished.kind).toBe('stored')
      expect(calls.length).toBeLessThanOrEqual(most)
    })
  })
}
