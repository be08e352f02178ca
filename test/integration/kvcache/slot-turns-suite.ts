import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { fieldsWithoutSlot } from '../../../src/kvcache/llamacpp-slots/engine-fields.ts'
import { leaseMs } from '../../../src/kvcache/llamacpp-slots/open-claims.ts'
import type { SlotTurn } from '../../../src/kvcache/slots/slot-ledger.ts'
import type { StoredKv } from '../../../src/sessions/session-record.ts'
import {
  anySignal,
  newPrompt,
  newSession,
  serveTurn,
  type TestSession,
  turnOf,
} from '../../contract/kvcache/kv-test-bed.ts'
import type { AttachOutcome, EngineField, KvConnector } from '../../contract/kvcache/old-kv-port.ts'
import { eventually } from '../../support/eventually.ts'
import type { SlotPod, SlotsTestBed } from './slots-test-bed.ts'

const timeoutMs = 60_000

type Fields = Readonly<Record<string, EngineField>>

/** What a client that names a slot gets: the gateway's fields win. */
const withSlot = (slot: number, fields: Fields): Fields => ({ id_slot: slot, ...fields })

/** Turns that share a pod: what keeps them apart, who holds which slot, and what a turn costs the engine. */
export const describeSlotTurns = (make: () => Promise<SlotsTestBed>): void => {
  describe('turns in slots', () => {
    let bed: SlotsTestBed
    let connector: KvConnector
    let first: SlotPod
    let second: SlotPod
    let session: TestSession
    let prompt: string
    beforeEach(async () => {
      bed = await make()
      connector = bed.connect()
      ;[first, second] = bed.pods
      session = newSession()
      prompt = newPrompt()
    }, timeoutMs)
    afterEach(async () => {
      for (const pod of bed.pods) pod.proxy.onRequest(() => {})
      await bed.close()
    }, timeoutMs)

    const serve = (pod: SlotPod, kv?: StoredKv, text = prompt) =>
      serveTurn(connector, { session, pod, prompt: text, kv })
    const begin = async (): Promise<StoredKv> => {
      const { kv } = await serve(first)
      if (kv === undefined) throw new Error('the first turn stored nothing')
      return kv
    }
    /** Serves the first turn; `meanwhile` happens between its answer and its offload. */
    const serveFirst = async (meanwhile: (place: SlotTurn) => Promise<unknown>) => {
      const turn = turnOf(session, first)
      const { fields, claim } = await connector.attach(turn, undefined, { signal: anySignal() })
      const usage = await first.run({ prompt, sessionId: session.id, fields })
      const totalTokens = usage.promptTokens + usage.outputTokens
      await meanwhile({ pod: first.address, slot: Number(fields['id_slot']), turnId: turn.turnId })
      return connector.offload({ turn, claim, totalTokens, announce: async () => {}, signal: anySignal() })
    }
    /** The slot of the first pod in which the session's KV lies. */
    const ownSlot = async (): Promise<number> => {
      const entries = await bed.ledger.list(first.address)
      return entries.find(({ owner }) => owner === session.key)?.slot ?? -1
    }

    describe('requests that repeat the conversation of a session', () => {
      const others: readonly { readonly name: string; readonly fields: () => Promise<Fields> }[] = [
        { name: 'turn without a session', fields: async () => connector.fieldsWithoutSession(session.tenant) },
        {
          name: 'turn without a session whose client names the slot',
          fields: async () => withSlot(await ownSlot(), connector.fieldsWithoutSession(session.tenant)),
        },
        {
          name: 'request of which no gateway knows',
          fields: async () => withSlot(await ownSlot(), fieldsWithoutSlot),
        },
        {
          name: 'first turn of another session',
          fields: async () =>
            (await connector.attach(turnOf(newSession(), first), undefined, { signal: anySignal() })).fields,
        },
        {
          name: 'turn whose load took too long',
          fields: async () => {
            const turn = turnOf(session, first)
            const late = await connector.attach(turn, undefined, { signal: AbortSignal.abort() })
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
      const kv = await begin()
      const attach = () => connector.attach(turnOf(session, first), kv, { signal: anySignal() })
      const attached = [await attach(), await attach(), await attach()]
      expect(attached.map(({ presence }) => presence.kind)).toEqual(['resident', 'loaded', 'no-room'])
    })

    test('turn waits for the slot of the turn before while it is being saved', async () => {
      const attached: AttachOutcome[] = []
      const offloaded = await serveFirst(async () => {
        first.proxy.onRequest((line) => {
          if (!line.includes('action=save')) return
          const next = connector.attach(turnOf(session, first), undefined, { signal: anySignal() })
          void next.then((outcome) => attached.push(outcome))
        })
      })
      await eventually(async () => attached.length === 1)
      expect([offloaded.kind, attached[0]?.presence]).toEqual([
        'stored',
        { kind: 'resident', tokens: expect.any(Number) },
      ])
    })

    test.each([
      { name: 'stored', isTaken: false, expected: { kind: 'stored' } },
      { name: 'not stored when another turn took its slot', isTaken: true, expected: { reason: 'not_verified' } },
    ])('a turn whose lease ran out is $name', async ({ isTaken, expected }) => {
      const offloaded = await serveFirst(async (place) => {
        await bed.ledger.renew([place], { leaseMs: 0 })
        const other = {
          session: newSession().key,
          turnId: 'other',
          leaseMs,
          artefactId: undefined,
          mayWait: false,
        }
        const slots = [{ id: place.slot, idle: true }]
        if (isTaken) await bed.ledger.claim({ ...other, pod: place.pod, slots })
      })
      expect(offloaded).toMatchObject(expected)
    })

    test.each([
      { name: 'warm turn', pod: () => first, most: 3 },
      { name: 'turn that moves to another pod', pod: () => second, most: 8 },
    ])('$name makes at most $most engine calls', async ({ pod, most }) => {
      const kv = await begin()
      const calls: string[] = []
      pod().proxy.onRequest((line) => void calls.push(line))
      const { offloaded } = await serve(pod(), kv, `${prompt} And one more question.`)
      expect(offloaded.kind).toBe('stored')
      expect(calls.length).toBeLessThanOrEqual(most)
    })
  })
}
